#include "muster/cluster/identity/compute_threads.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster::compute_threads_test {
namespace {

TaskConfig Task(const std::string& cluster, const std::string& type, int index = 0) {
  return ResolveTaskConfig({.tf_config = absl::StrCat("{\"cluster\": ", cluster, ", \"task\": {\"type\": \"", type,
                                                      "\", \"index\": ", index, "}}")})
      .value();
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

TEST(ComputeThreadsTest, AProcessHasACore) { EXPECT_GE(AvailableCores(), 1); }

}  // namespace
}  // namespace muster::compute_threads_test
