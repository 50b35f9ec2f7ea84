#include "muster/launch/backends/local/memory_watch.h"

#include <gmock/gmock.h>

#include <map>
#include <vector>

namespace muster::memory_watch_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

const TaskId kSmall{kWorkerJob, 0}, kLarge{kWorkerJob, 1};

class MemoryWatchTest : public testing::Test {
 protected:
  void AdvanceToDeadline() { clock_.AdvanceTo(watch_.deadline()); }

  SimulatedClock clock_;
  std::map<pid_t, int64_t> used_;
  int reads_ = 0;
  std::vector<pid_t> asked_;
  MemoryWatch watch_{clock_, [this](const std::vector<pid_t>& pids) {
                       ++reads_;
                       asked_ = pids;
                       return used_;
                     }};
};

TEST_F(MemoryWatchTest, LooksOnceASecondAndTellsWhoUsesMoreThanItMay) {
  watch_.Add(kSmall, 11, 100);
  watch_.Add(kLarge, 12, 1000);
  EXPECT_EQ(watch_.deadline(), clock_.Now() + absl::Seconds(1));
  used_ = {{11, 500}, {12, 500}};
  EXPECT_THAT(watch_.Check(), IsEmpty()) << "not yet";
  EXPECT_EQ(reads_, 0);
  AdvanceToDeadline();
  EXPECT_THAT(watch_.Check(), ElementsAre(kSmall));
  EXPECT_EQ(reads_, 1) << "one pass for all";
  EXPECT_THAT(asked_, ElementsAre(11, 12));
  EXPECT_EQ(watch_.deadline(), clock_.Now() + absl::Seconds(1));
}

TEST_F(MemoryWatchTest, WhoIsNotFoundUsesNothing) {
  watch_.Add(kSmall, 11, 100);
  watch_.Add(kLarge, 12, 100);
  used_ = {{12, 500}};
  AdvanceToDeadline();
  EXPECT_THAT(watch_.Check(), ElementsAre(kLarge));
}

TEST_F(MemoryWatchTest, AllThatItMayIsNotMore) {
  watch_.Add(kSmall, 11, 100);
  used_[11] = 100;
  AdvanceToDeadline();
  EXPECT_THAT(watch_.Check(), IsEmpty());
  used_[11] = 101;
  AdvanceToDeadline();
  EXPECT_THAT(watch_.Check(), ElementsAre(kSmall));
}

TEST_F(MemoryWatchTest, WithNothingToWatchItNeverLooks) {
  EXPECT_EQ(watch_.deadline(), absl::InfiniteFuture());
  watch_.Add(kSmall, 11, 100);
  watch_.Remove(kSmall);
  EXPECT_EQ(watch_.deadline(), absl::InfiniteFuture());
  clock_.Advance(absl::Hours(1));
  EXPECT_THAT(watch_.Check(), IsEmpty());
  EXPECT_EQ(reads_, 0);
}

}  // namespace
}  // namespace muster::memory_watch_test
