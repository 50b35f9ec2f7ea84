#include "muster/cluster/task_id.h"

#include <gmock/gmock.h>

#include "absl/container/flat_hash_set.h"

namespace muster::task_id_test {
namespace {

using ::testing::HasSubstr;

TEST(TaskId, IsWrittenAndReadInBothForms) {
  const TaskId task{"worker", 12};
  EXPECT_EQ(task.ToString(), "worker:12");
  EXPECT_EQ(task.ToDevice(), "/job:worker/task:12");
  EXPECT_EQ(TaskId::Parse("worker:12").value(), task);
  EXPECT_EQ(TaskId::Parse("/job:worker/task:12").value(), task);
  EXPECT_EQ(TaskId::Parse("job:worker/replica:0/task:12/cpu:0").value(), task);
}

TEST(TaskId, RefusesWhatIsNoTask) {
  for (const char* text : {"", "worker", "worker:", "worker:x", "worker:-1", ":0", "1a:0", "wor ker:0", "/job:worker",
                           "/task:1", "worker:1:2", "worker:1000000", "worker:99999999999"}) {
    const auto task = TaskId::Parse(text);
    EXPECT_EQ(task.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(task.status().message()), HasSubstr("accepted")) << text;
  }
}

TEST(TaskId, OrdersByJobThenNumber) {
  EXPECT_LT((TaskId{"ps", 9}), (TaskId{"worker", 0}));
  EXPECT_LT((TaskId{"ps", 2}), (TaskId{"ps", 10}));
  const absl::flat_hash_set<TaskId> tasks = {{"ps", 1}, {"ps", 1}, {"ps", 2}};
  EXPECT_EQ(tasks.size(), 2);
}

}  // namespace
}  // namespace muster::task_id_test
