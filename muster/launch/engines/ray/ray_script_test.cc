#include "muster/launch/engines/ray/ray_script.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/system/program_output.h"

namespace muster::ray_script_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Pair;

JobRequest Request() {
  JobRequest request{.experiment = "1.2", .project = "toy", .after = "muster-1.1-ab:muster-1.0-cd"};
  request.setting.ray = RaySetting{.nodes = 3};
  request.folder = "/shared/a folder";
  return request;
}

// Returns what the script asks for.
nlohmann::json AskedIn(const std::string& script) {
  const size_t begin = script.find("\n#RAY ") + 6;
  return nlohmann::json::parse(script.substr(begin, script.find('\n', begin) - begin));
}

TEST(RayScriptTest, HasWhatIsAskedForOnOneLineAndStartsTheDriver) {
  const std::string script = RayScript(Request(), {.address = "http://h1:8265", .python = "python3"});
  EXPECT_THAT(script, HasSubstr("# Experiment 1.2 of project toy, as muster train has given it to Ray.\n"));
  const nlohmann::json asked = AskedIn(script);
  EXPECT_EQ(asked["nodes"], 3);
  EXPECT_EQ(asked["address"], "http://h1:8265");
  EXPECT_EQ(asked["after"], (std::vector<std::string>{"muster-1.1-ab", "muster-1.0-cd"}));
  EXPECT_THAT(script, HasSubstr("\nfolder='/shared/a folder'\n"));
}

TEST(RayScriptTest, TheLeastNumberOfNodesIsThatOfTheRun) {
  JobRequest request = Request();
  EXPECT_EQ(AskedIn(RayScript(request, {}))["least_nodes"], 3);
  request.least_hosts = 2;
  EXPECT_EQ(AskedIn(RayScript(request, {}))["least_nodes"], 2);
}

TEST(RayScriptTest, ANodeIsAskedForWhatItsTasksState) {
  JobRequest request = Request();
  EXPECT_THAT(RayResources(request), ElementsAre(Pair("CPU", 0.01))) << "Ray refuses nothing";
  request.needs = {.cpus = 2, .mem_bytes = 1 << 30, .gpus = 1};
  EXPECT_THAT(RayResources(request),
              ElementsAre(Pair("CPU", 2), Pair("GPU", 1), Pair("memory", (1 << 30) + (192 << 20))));
  request.setting.ray->resources = {{"CPU", 0}, {"GPU", 0}, {"memory", 0}, {"TPU", 4}};
  EXPECT_THAT(RayResources(request), ElementsAre(Pair("TPU", 4)));
  request.setting.ray->resources.erase("TPU");
  EXPECT_THAT(RayResources(request), ElementsAre(Pair("CPU", 0.01)));
}

// The script ends with a line that Ray shows, and with 2, where a job's driver can't begin.
TEST(RayScriptTest, ANodeWithoutMusterOrRaySaysSo) {
  const ScratchFolder scratch;
  const auto said = [&scratch](const std::string& muster) {
    JobRequest request = Request();
    request.muster = muster;
    scratch.Write("job.sh", RayScript(request, {.address = "http://h1:8265", .python = scratch / "python"}));
    const auto output = RunToItsEnd({"/bin/sh", scratch / "job.sh", "job-1"},
                                    {absl::StrCat("PATH=", scratch.path(), ":/usr/bin:/bin")}, absl::Minutes(1));
    EXPECT_TRUE(output.ok()) << output.status();
    if (!output.ok()) return std::string();
    EXPECT_EQ(output->status.code, 2) << output->err;
    return output->err;
  };
  EXPECT_THAT(said("/nonexistent/muster"), HasSubstr(" has no /nonexistent/muster: put muster into a folder that"));
  // No python here has Ray.
  for (const char* name : {"python", "python3"}) {
    scratch.Write(name, "#!/bin/sh\nexit 1\n");
    chmod((scratch / name).c_str(), 0700);
  }
  EXPECT_THAT(said("/bin/true"), HasSubstr(absl::StrCat(" has no ", scratch / "python", " with Ray, where the job's")));
  // A folder of that name where the job begins is no Ray.
  scratch.Write("ray/file", "");
  for (const char* name : {"python", "python3"})
    scratch.Write(name, absl::StrCat("#!/bin/sh\ncd ", scratch.path(), "; exec /usr/bin/python3 -S \"$@\"\n"));
  EXPECT_THAT(said("/bin/true"), HasSubstr("say which python has it there (ray: {python: FILE})"));
}

TEST(RayPlaceTest, IsReadAsItIsWritten) {
  const RayPlace place = RayPlace::Parse(RayPlace{.address = "http://h1:1", .python = "/opt/python"}.text());
  EXPECT_EQ(place.address, "http://h1:1");
  EXPECT_EQ(place.python, "/opt/python");
  EXPECT_EQ(RayPlace::Parse("").text(), "http://127.0.0.1:8265 python3");
}

}  // namespace
}  // namespace muster::ray_script_test
