#include "muster/cluster/identity/compute_threads.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace muster::compute_threads_test {
namespace {

TaskConfig Task(const std::string& cluster, const std::string& type, int index = 0) {
  return ResolveTaskConfig({.tf_config = absl::StrCat("{\"cluster\": ", cluster, ", \"task\": {\"type\": \"", type,
                                                      "\", \"index\": ", index, "}}")})
      .value();
}

ComputeThreads ComputeThreadsOf(const TaskConfig& task, int processors, const Environment& environment = {}) {
  return muster::ComputeThreadsOf(task, environment, {.count = processors, .why = "of this machine"});
}

TEST(ComputeThreadsTest, OneProcessAloneHasAllCores) {
  EXPECT_EQ(ComputeThreadsOf(TaskConfig(), 6).threads, 6);
  EXPECT_EQ(ComputeThreadsOf(TaskConfig(), 1).threads, 1);
}

TEST(ComputeThreadsTest, WorkersOfAHostShareWhatItsPsLeave) {
  const std::string cluster = R"({"ps": ["localhost:1"], "worker": ["127.0.0.1:2", "LOCALHOST:3"]})";
  for (const int worker : {0, 1}) {
    EXPECT_EQ(ComputeThreadsOf(Task(cluster, "worker", worker), 9).threads, 4);
    EXPECT_EQ(ComputeThreadsOf(Task(cluster, "worker", worker), 8).threads, 3) << "no core is promised twice";
  }
  EXPECT_EQ(ComputeThreadsOf(Task(cluster, "worker"), 2).threads, 1);
  EXPECT_EQ(ComputeThreadsOf(Task(cluster, "worker"), 1).threads, 1) << "there is always one";
  EXPECT_EQ(ComputeThreadsOf(Task(cluster, "worker"), 9).ps, 1);
  EXPECT_EQ(ComputeThreadsOf(Task(cluster, "worker"), 9).computing, 2);
}

TEST(ComputeThreadsTest, TasksOfOtherHostsTakeNothing) {
  const std::string cluster = R"({"ps": ["a:1", "b:1"], "chief": ["a:2"], "worker": ["b:2", "c:2", "c:3"]})";
  EXPECT_EQ(ComputeThreadsOf(Task(cluster, "chief"), 8).threads, 7);
  EXPECT_EQ(ComputeThreadsOf(Task(cluster, "worker", 0), 8).threads, 7);
  EXPECT_EQ(ComputeThreadsOf(Task(cluster, "worker", 1), 8).threads, 4);
}

constexpr char kTwoWorkers[] = R"({"ps": ["localhost:1"], "worker": ["localhost:2", "localhost:3"]})";

TEST(ComputeThreadsTest, SaysWhy) {
  EXPECT_EQ(ComputeThreadsOf(Task(kTwoWorkers, "worker"), 9).why,
            "9 processors of this machine; tasks on this host: 2 computing, 1 ps");
  EXPECT_EQ(ComputeThreadsOf(TaskConfig(), 1).why,
            "1 processor of this machine; tasks on this host: 1 computing, 0 ps");
}

TEST(ComputeThreadsTest, OpenMpsNumberIsThatOfEachProcess) {
  for (const auto& [text, threads] : {std::pair{"1", 1}, std::pair{"3", 3}, std::pair{"2,1", 2}, std::pair{"64", 64}}) {
    const Environment environment{.omp_num_threads = text, .slurm_cpus_per_task = "5"};
    EXPECT_EQ(ComputeThreadsOf(Task(kTwoWorkers, "worker"), 9, environment).threads, threads) << text;
    EXPECT_EQ(ComputeThreadsOf(TaskConfig(), 9, environment).why, "OMP_NUM_THREADS");
  }
  for (const char* text : {"", "0", "-1", "all"})
    EXPECT_EQ(ComputeThreadsOf(Task(kTwoWorkers, "worker"), 9, {.omp_num_threads = text}).threads, 4) << text;
}

TEST(ComputeThreadsTest, SlurmsNumberIsThatOfTheProcessThatItStarted) {
  EXPECT_EQ(ComputeThreadsOf(Task(kTwoWorkers, "worker"), 9, {.slurm_cpus_per_task = "3"}).threads, 3);
  const ComputeThreads below_a_launcher =
      ComputeThreadsOf(Task(kTwoWorkers, "worker"), 9, {.run_id = "r", .slurm_cpus_per_task = "5"});
  EXPECT_EQ(below_a_launcher.threads, 2) << "the launcher's number is shared";
  EXPECT_THAT(below_a_launcher.why, testing::HasSubstr("5 processors by SLURM_CPUS_PER_TASK"));
}

TEST(ComputeThreadsTest, AJobCanBeToldHowManyProcessorsItMayUse) {
  const auto told = ProcessorsOfJob({.processors = "1"});
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->count, 1);
  EXPECT_GE(ProcessorsOfJob({})->count, 1);
  EXPECT_EQ(ProcessorsOfJob({.processors = ""})->count, ProcessorsOfJob({})->count);
  for (const char* text : {"0", "-2", "half"}) {
    const absl::Status refused = ProcessorsOfJob({.processors = text}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << text;
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("MUSTER_PROCESSORS")) << text;
  }
}

}  // namespace
}  // namespace muster::compute_threads_test
