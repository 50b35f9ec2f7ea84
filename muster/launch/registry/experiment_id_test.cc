#include "muster/launch/registry/experiment_id.h"

#include <gmock/gmock.h>

#include <string>

namespace muster::experiment_id_test {
namespace {

using ::testing::HasSubstr;

TEST(ExperimentId, IsReadAsItIsWritten) {
  for (const ExperimentId& id : {ExperimentId{1, 0}, ExperimentId{4, 3}, ExperimentId{999999999, 10000}}) {
    const auto parsed = ExperimentId::Parse(id.ToString()).value();
    EXPECT_EQ(parsed, id);
  }
  EXPECT_EQ((ExperimentId{4, 0}.ToString()), "4");
  EXPECT_EQ((ExperimentId{4, 3}.ToString()), "4.3");
  EXPECT_LT((ExperimentId{4, 10}), (ExperimentId{5, 2}));
}

TEST(ExperimentId, AnythingElseIsRefused) {
  for (const char* wrong : {"", "0", "04", "-1", "+4", " 4", "4 ", "4.", ".4", "4.0", "4.03", "4.3.2", "x", "4x",
                            "4.master", "4.worker.1", "1234567890", "99999999999999999999", "../4"}) {
    const auto parsed = ExperimentId::Parse(wrong);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("accepted: a number from 1 (\"4\")")) << wrong;
  }
}

TEST(ExperimentName, TasksAreCountedFromOne) {
  EXPECT_EQ(LabelOf({kMasterJob, 0}), "master");
  EXPECT_EQ(LabelOf({kBuildJob, 0}), "build");
  EXPECT_EQ(LabelOf({kEvaluatorJob, 0}), "evaluator");
  EXPECT_EQ(LabelOf({kWorkerJob, 0}), "worker.1");
  EXPECT_EQ(FullName({4, 0}, {kPsJob, 1}), "4.ps.2");
  EXPECT_EQ(FullName({4, 3}, {kWorkerJob, 1}), "4.3.worker.2");
}

TEST(ExperimentName, IsReadAsItIsWritten) {
  const TaskId tasks[] = {{kMasterJob, 0}, {kBuildJob, 0},    {kEvaluatorJob, 0},
                          {kPsJob, 0},     {kWorkerJob, 122}, {kWorkerJob, kMaxTaskIndex}};
  for (const ExperimentId& id : {ExperimentId{4, 0}, ExperimentId{4, 3}}) {
    const auto whole = ExperimentName::Parse(id.ToString()).value();
    EXPECT_EQ(whole.id, id);
    EXPECT_FALSE(whole.task.has_value());
    for (const TaskId& task : tasks) {
      const auto name = ExperimentName::Parse(FullName(id, task)).value();
      EXPECT_EQ(name.id, id);
      EXPECT_EQ(name.task, task);
    }
  }
}

TEST(ExperimentName, AnythingElseIsRefused) {
  for (const char* wrong : {"", "master", "4.worker", "4.worker.0", "4.worker.01", "4.worker.1.2", "4.worker.1000001",
                            "4.3.2.ps.1", "4.3.", "4..master", "4.wor ker.1", "4:worker.1", "four"}) {
    const auto name = ExperimentName::Parse(wrong);
    EXPECT_EQ(name.status().code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(name.status().message()), HasSubstr("\"4.worker.2\"")) << wrong;
  }
}

}  // namespace
}  // namespace muster::experiment_id_test
