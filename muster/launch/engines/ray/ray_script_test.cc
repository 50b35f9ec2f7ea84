#include "muster/launch/engines/ray/ray_script.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace muster::ray_script_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Pair;

JobRequest Request() {
  JobRequest request{.experiment = "1.2", .project = "toy", .after = "muster-1.1-ab:muster-1.0-cd"};
  request.setting.ray = RaySetting{.nodes = 3};
  request.folder = "/shared/a folder";
  return request;
}

TEST(RayScriptTest, HasWhatIsAskedForOnOneLineAndStartsTheDriver) {
  const std::string script = RayScript(Request(), {.address = "http://h1:8265", .python = "python3"});
  EXPECT_THAT(script, HasSubstr("# Experiment 1.2 of project toy, as muster train has given it to Ray.\n"));
  const size_t begin = script.find("\n#RAY ") + 6;
  const auto asked = nlohmann::json::parse(script.substr(begin, script.find('\n', begin) - begin));
  EXPECT_EQ(asked["nodes"], 3);
  EXPECT_EQ(asked["address"], "http://h1:8265");
  EXPECT_EQ(asked["after"], (std::vector<std::string>{"muster-1.1-ab", "muster-1.0-cd"}));
  EXPECT_THAT(script, HasSubstr("\nfolder='/shared/a folder'\n"));
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

TEST(RayPlaceTest, IsReadAsItIsWritten) {
  const RayPlace place = RayPlace::Parse(RayPlace{.address = "http://h1:1", .python = "/opt/python"}.text());
  EXPECT_EQ(place.address, "http://h1:1");
  EXPECT_EQ(place.python, "/opt/python");
  EXPECT_EQ(RayPlace::Parse("").text(), "http://127.0.0.1:8265 python3");
}

}  // namespace
}  // namespace muster::ray_script_test
