#include "muster/launch/engines/spark/spark_script.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/system/program_output.h"

namespace muster::spark_script_test {
namespace {

using ::testing::HasSubstr;

JobRequest Request() {
  JobRequest request{.experiment = "1.2", .project = "toy", .after = "h1-7-8:h1-9-10"};
  request.setting.spark = SparkSetting{.nodes = 3, .conf = {{"spark.yarn.queue", "a b"}}};
  request.folder = "/shared/a folder";
  return request;
}

nlohmann::json AskedIn(const std::string& script) {
  const size_t begin = script.find("\n#SPARK ") + 8;
  return nlohmann::json::parse(script.substr(begin, script.find('\n', begin) - begin));
}

TEST(SparkScriptTest, HasWhatIsAskedForOnOneLineAndStartsTheDriver) {
  const std::string script = SparkScript(Request(), {.address = "spark://h1:7077", .python = "python3"});
  EXPECT_THAT(script, HasSubstr("# Experiment 1.2 of project toy, as muster train gives it to Spark.\n"));
  const nlohmann::json asked = AskedIn(script);
  EXPECT_EQ(asked["nodes"], 3);
  EXPECT_EQ(asked["address"], "spark://h1:7077");
  EXPECT_EQ(asked["start_timeout"], 600);
  EXPECT_EQ(asked["conf"]["spark.yarn.queue"], "a b");
  EXPECT_EQ(asked["after"], (std::vector<std::string>{"h1-7-8", "h1-9-10"}));
  EXPECT_TRUE(asked["ports"].is_null());
  EXPECT_THAT(script, HasSubstr("\nfolder='/shared/a folder'\n"));
}

TEST(SparkScriptTest, TheLeastNumberOfTasksIsThatOfTheRun) {
  JobRequest request = Request();
  EXPECT_EQ(AskedIn(SparkScript(request, {}))["least_nodes"], 3);
  request.least_hosts = 2;
  EXPECT_EQ(AskedIn(SparkScript(request, {}))["least_nodes"], 2);
}

TEST(SparkScriptTest, AHostIsAskedForWhatItsTasksState) {
  JobRequest request = Request();
  nlohmann::json asked = AskedIn(SparkScript(request, {}));
  EXPECT_EQ(asked["cpus"], 1);
  EXPECT_EQ(asked["mem_mib"], 0);
  EXPECT_EQ(asked["gpus"], 0);
  request.needs = {.cpus = 2.5, .mem_bytes = 1 << 30, .gpus = 1};
  request.setting.ports = PortRange{.first = 40000, .count = 100};
  asked = AskedIn(SparkScript(request, {}));
  EXPECT_EQ(asked["cpus"], 3);
  EXPECT_EQ(asked["mem_mib"], 1024 + 256);
  EXPECT_EQ(asked["gpus"], 1);
  EXPECT_EQ(asked["ports"], (std::vector<int>{40000, 100}));
}

class SparkScriptRuns : public ::testing::Test {
 protected:
  // Returns what the script says, whose python is a script that the test writes.
  ProgramOutput Run(const std::string& muster) const {
    JobRequest request = Request();
    request.muster = muster;
    request.folder = scratch_.path();
    request.output_file = scratch_ / "job.out";
    scratch_.Write("job.sh", SparkScript(request, {.address = "", .python = scratch_ / "python"}));
    return RunToItsEnd({"/bin/sh", scratch_ / "job.sh", "h1-7-8"}, {"PATH=/usr/bin:/bin"}, absl::Minutes(1)).value();
  }
  const ScratchFolder scratch_;
};

TEST_F(SparkScriptRuns, TheDriverTakesThePlaceOfTheShell) {
  scratch_.Write("python", "#!/bin/sh\necho \"$@\"\n");
  chmod((scratch_ / "python").c_str(), 0700);
  EXPECT_EQ(Run("/bin/true").out,
            absl::StrCat(scratch_ / "driver/spark_driver.py", " ", scratch_ / "job.sh", " h1-7-8\n"));
}

TEST_F(SparkScriptRuns, WhatIsGoneIsSaidInTheExperimentsFile) {
  const ProgramOutput without_python = Run("/bin/true");
  EXPECT_EQ(without_python.status.code, 2);
  EXPECT_THAT(scratch_.Read("job.out"), HasSubstr("python any more: say which python has pyspark"));
  EXPECT_EQ(Run("/nonexistent/muster").status.code, 2);
  EXPECT_THAT(scratch_.Read("job.out"), HasSubstr("muster: there is no /nonexistent/muster any more"));
}

TEST(SparkPlaceTest, IsReadAsItIsWritten) {
  const SparkPlace place = SparkPlace::Parse(SparkPlace{.address = "local-cluster[2,1,1024]", .python = "/p"}.text());
  EXPECT_EQ(place.address, "local-cluster[2,1,1024]");
  EXPECT_EQ(place.python, "/p");
  EXPECT_EQ(SparkPlace::Parse(SparkPlace{.address = "", .python = "/p"}.text()).address, "");
  EXPECT_EQ(SparkPlace::Parse("").text(), "- python3");
}

}  // namespace
}  // namespace muster::spark_script_test
