#include "muster/launch/jobs/job_wait.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace muster::job_wait_test {
namespace {

constexpr absl::Time kNow = absl::FromUnixSeconds(1000000000);

TEST(JobWait, ThePauseDoublesUpToFiveMinutes) {
  const auto pause = [](int tries) { return PauseBeforeTry(tries, absl::Seconds(30), 0.5); };
  EXPECT_EQ(pause(1), absl::Seconds(30));
  EXPECT_EQ(pause(2), absl::Seconds(60));
  EXPECT_EQ(pause(4), absl::Seconds(240));
  EXPECT_EQ(pause(5), absl::Minutes(5));
  EXPECT_EQ(pause(1000000), absl::Minutes(5));
  EXPECT_EQ(PauseBeforeTry(3, absl::Hours(1), 0.5), absl::Hours(1));
}

TEST(JobWait, ChanceMovesItByAQuarter) {
  EXPECT_EQ(PauseBeforeTry(1, absl::Seconds(40), 0), absl::Seconds(30));
  EXPECT_EQ(PauseBeforeTry(1, absl::Seconds(40), 1), absl::Seconds(50));
  std::set<double> pauses;
  for (int i = 0; i < 10; ++i) {
    JobOfRun job;
    NoteNoRoom(job, "full", {}, kNow);
    pauses.insert(job.again_at);
  }
  EXPECT_GT(pauses.size(), 1U);
}

TEST(JobWait, SaysWhyHowOftenAndWhen) {
  JobOfRun job;
  EXPECT_FALSE(HasNoJob(job));
  NoteNoRoom(job, "full\nof others", {}, kNow);
  EXPECT_TRUE(HasNoJob(job));
  EXPECT_EQ(WhyNoJob(job), "full\\x0aof others; tried once");
  EXPECT_FALSE(IsDue(job, kNow + absl::Seconds(22)));
  EXPECT_TRUE(IsDue(job, kNow + absl::Seconds(38)));
  job.again_at = 1000000040.5;
  EXPECT_EQ(WhenAgain(job, kNow), "again in 41 s");
  EXPECT_EQ(WhenAgain(job, kNow + absl::Hours(1)), "it is tried again now");
  EXPECT_TRUE(MayTryAgain(job, {}));
  EXPECT_TRUE(MayTryAgain(job, {.start_tries = 2}));
  EXPECT_FALSE(MayTryAgain(job, {.start_tries = 1}));
}

TEST(JobWait, SaysWhoseTurnComesFirst) {
  JobOfRun job;
  NoteTurn(job, 2);
  EXPECT_TRUE(HasNoJob(job));
  EXPECT_TRUE(IsDue(job, kNow));
  EXPECT_EQ(WhyNoJob(job), "2 other runs of its grid come first");
  EXPECT_EQ(WhenAgain(job, kNow), "once one of them has ended");
  NoteTurn(job, 1);
  EXPECT_EQ(WhyNoJob(job), "another run of its grid comes first");
}

}  // namespace
}  // namespace muster::job_wait_test
