#include "muster/launch/supervise/place_search.h"

#include <gtest/gtest.h>

namespace muster::place_search_test {
namespace {

const TaskId kPs{kPsJob, 0};
const TaskId kWorker{kWorkerJob, 1};
constexpr absl::Time kBegin = absl::UnixEpoch();

TEST(PlaceSearchTest, PausesGrowUpToTenSecondsUntilThePatienceIsOver) {
  PlaceSearch search;
  absl::Time now = kBegin;
  absl::Duration pause;
  int tries = 0, news = 0;
  while (const auto next = search.Next(kPs, now)) {
    EXPECT_GE(next->when - now, pause);
    EXPECT_EQ(next->left, kBegin + PlaceSearch::kPatience - now);
    pause = next->when - now;
    now = next->when;
    ++tries;
    news += next->is_news ? 1 : 0;
  }
  EXPECT_EQ(pause, absl::Seconds(10));
  EXPECT_GE(now, kBegin + PlaceSearch::kPatience);
  EXPECT_GT(tries, 60);
  EXPECT_EQ(news, (tries + 9) / 10);
  EXPECT_FALSE(search.Next(kPs, now).has_value()) << "it stays over";
}

TEST(PlaceSearchTest, ATaskThatHasFoundOneBeginsAnew) {
  PlaceSearch search;
  ASSERT_TRUE(search.Next(kPs, kBegin).has_value());
  EXPECT_TRUE(search.HasAny(kPsJob));
  EXPECT_FALSE(search.HasAny(kWorkerJob));
  ASSERT_TRUE(search.Next(kWorker, kBegin).has_value());
  search.OnFound(kPs);
  EXPECT_FALSE(search.HasAny(kPsJob));
  const auto next = search.Next(kPs, kBegin + absl::Hours(1));
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->left, PlaceSearch::kPatience);
  EXPECT_TRUE(next->is_news);
}

}  // namespace
}  // namespace muster::place_search_test
