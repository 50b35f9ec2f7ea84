// What takes too long for every day with a real Ray: much code, a node without memory, another head.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "tests/process/ray/ray_experiment.h"

namespace muster::ray_long_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr;

class RayLong : public RayExperiment {};

// Ray itself takes 500 MB for a job's files.
TEST_F(RayLong, SixHundredMegabytesOfCodeGoToTheNodesThatDontSeeThem) {
  job_ = "nodes: 3";
  for (const char* host : {"h2", "h3"}) HideFrom(host);
  Write("data", "");
  std::filesystem::resize_file(project() + "/data", 600 << 20);
  WriteCluster("{worker: 3}", "wc -c <data");
  const Said said = Muster({"train", "--code_limit", "1GB"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err << Read("experiments/1/job.out");
  for (const char* task : {"1.master", "1.worker.1", "1.worker.2"})
    EXPECT_THAT(LinesOf(said.out, task), Contains("629145600")) << said.out;
}

// The monitor of h3 finds that more is used than it allows, whatever is used.
TEST_F(RayLong, RaysMemoryMonitorIsNamedWhenItKills) {
  ray().KillRayletOn("h3");
  ray().StartOn({"h3"}, {"RAY_memory_monitor_refresh_ms=100", "RAY_memory_usage_threshold=0.001"});
  job_ = "nodes: 3";
  WriteCluster("{worker: 3}", UntilStop());
  const Said said = Muster({"train"});
  EXPECT_NE(said.exit_code, 0) << said.out;
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              AllOf(HasSubstr("Ray's memory monitor has killed it: "), HasSubstr("low on memory")));
  ray().KillRayletOn("h3");
  ray().StartOn({"h3"});
}

// With its head all of Ray ends, and the experiment. The next head doesn't know its job, and runs its next attempt.
TEST_F(RayLong, AnotherHeadRunsTheNextAttempt) {
  job_ = "nodes: 2";
  WriteExperiment(
      "run: if [ -e $OUTPUT_DIR/saved ]; then echo resumed; else touch $OUTPUT_DIR/saved; echo begins; sleep 1000; fi");
  const auto train = StartMuster({"train"});
  train->WaitForOut("begins");
  ray().KillRayletOn("h1");
  for (const char* host : {"h2", "h3"}) ray().KillOn(host);
  for (const std::string& host : hosts().names()) hosts().AwaitNothingOn(host);
  ray().StartOn(hosts().names());
  EXPECT_NE(train->Wait(), 0) << train->out;
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              ContainsRegex("its job muster-1-[0-9a-f]+ of Ray has ended"));
  const Said again = Muster({"train", "--experiment", "1"});
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_THAT(LinesOf(again.out, "1.master"), Contains("resumed"));
}

}  // namespace
}  // namespace muster::ray_long_test
