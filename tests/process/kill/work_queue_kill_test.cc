// Workers that share the rows of epoch after epoch are killed with SIGKILL at any moment. The model proves the result:
// it has one element per row, to which every update of that row adds one.
#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/store/messages/messages.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/killed_run.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/process.h"

namespace muster::work_queue_kill_test {
namespace {

using ::testing::Each, ::testing::HasSubstr;

constexpr int64_t kRows = 2000;
const std::vector<std::string> kShare = {"--share_unit=7", "--log_steps=10"};

WorkState StateOf(const FinalValues& final) {
  WorkState state;
  EXPECT_FALSE(final.work.empty());
  EXPECT_EQ(Decode(final.work, state), absl::OkStatus());
  return state;
}

// Returns how often each row was used, according to the queue.
std::vector<float> TimesSeen(const WorkState& state) {
  std::vector<float> times(kRows, static_cast<float>(state.epoch));
  for (int64_t row = 0; row < state.next; ++row) ++times[static_cast<size_t>(row)];
  for (const WorkEntry& left : state.entries)
    for (int64_t row = left.begin; row < left.end; ++row) --times[static_cast<size_t>(row)];
  return times;
}

class WorkQueueKillTest : public ::testing::Test {
 private:
  const LeftBehind left_behind_;
};

TEST_F(WorkQueueKillTest, EachRowIsSeenOnceAnEpochWhicheverWorkersAreKilled) {
  KilledRun run(3, kRows, Joined(kShare, {"--share_epochs=0"}), /*ps=*/1);
  const std::vector<std::string> victims = {"worker:1", "worker:2", "worker:0"};
  for (int i = 0; i < 9; ++i) run.Kill(victims[static_cast<size_t>(i % 3)]);
  EXPECT_EQ(run.End(), 0) << run.log();
  const FinalValues final = run.ReadFinal();
  std::vector<float> values = TimesSeen(StateOf(final));
  for (float& times : values) times += 1;  // each element begins with one
  EXPECT_EQ(final.w, values);
  EXPECT_THAT(final.b, Each(1.0f + static_cast<float>(final.global_step)));
  EXPECT_THAT(run.log(), HasSubstr("of the work queue that worker:1 had"));
}

TEST_F(WorkQueueKillTest, ARunEndsWithItsEpochsAndTheNextGoesOnBehindThem) {
  ScratchFolder model;
  for (const int epochs : {2, 5}) {
    Process run(Joined({BinFolder() + "/muster", "run", "--ps", "1", "--workers", "3", "--muster-ps", "--model_dir",
                        model.path(), "--"},
                       Joined(ToyThatCounts(), Joined(kShare, {"--steps=1000000000", "--width=" + std::to_string(kRows),
                                                               "--share_epochs=" + std::to_string(epochs)}))));
    EXPECT_EQ(run.Wait(), 0) << run.err;
    const FinalValues final = ReadFinal(model.path(), kRows);
    EXPECT_THAT(final.w, Each(1.0f + static_cast<float>(epochs)));
    const WorkState state = StateOf(final);
    EXPECT_EQ(state.epoch, epochs);
    EXPECT_TRUE(state.entries.empty());
  }
}

}  // namespace
}  // namespace muster::work_queue_kill_test
