#include "muster/base/wait_notices.h"

#include <gmock/gmock.h>

#include <vector>

namespace muster::wait_notices_test {
namespace {

TEST(WaitNotices, BecomeRarerUntilThereIsOneAMinute) {
  const absl::Time began = absl::FromUnixSeconds(1000);
  WaitNotices notices(began, absl::Seconds(5));
  std::vector<int> seconds;
  for (int second = 0; second <= 260; ++second)
    if (notices.Due(began + absl::Seconds(second))) seconds.push_back(second);
  EXPECT_THAT(seconds, ::testing::ElementsAre(5, 15, 35, 75, 135, 195, 255));
}

TEST(WaitNotices, SayForHowLongInWholeSeconds) {
  const WaitNotices notices(absl::FromUnixSeconds(1000), absl::Seconds(5));
  EXPECT_EQ(notices.Since(absl::FromUnixSeconds(1040) + absl::Milliseconds(700)), "since 40s");
  EXPECT_EQ(notices.Since(absl::FromUnixSeconds(1075)), "since 1m15s");
}

}  // namespace
}  // namespace muster::wait_notices_test
