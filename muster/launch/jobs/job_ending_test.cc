#include "muster/launch/jobs/job_ending.h"

#include <gtest/gtest.h>

#include <vector>

#include "muster/launch/testing/played_job_engine.h"

namespace muster::job_ending_test {
namespace {

class JobEndingTest : public ::testing::Test {
 protected:
  // Returns the ending that is found; `later`: what the engine says from the second pause on.
  std::optional<std::string> Ending(const JobNews& at_first, const std::optional<JobNews>& later = std::nullopt) {
    played_.news["7"] = at_first;
    PlayedJobEngine engine(played_);
    paused_ = absl::ZeroDuration();
    return EndingOf(engine, "7", [&](absl::Duration pause) {
      paused_ += pause;
      if (later.has_value() && paused_ >= 2 * pause) played_.news["7"] = *later;
    });
  }

  PlayedJobs played_;
  absl::Duration paused_;
};

constexpr JobPhase kRuns = JobPhase::kRuns, kEnded = JobPhase::kEnded;

TEST_F(JobEndingTest, AJobThatIsCancelledHasNoReason) {
  EXPECT_EQ(Ending({.phase = kRuns, .text = "COMPLETING", .ending = true}), "");
  EXPECT_EQ(Ending({.phase = kEnded, .text = "CANCELLED", .cancelled = true}), "");
  EXPECT_EQ(paused_, absl::ZeroDuration());
}

TEST_F(JobEndingTest, AnEndThatTheEngineMakesIsNamed) {
  EXPECT_EQ(Ending({.phase = kRuns, .text = "COMPLETING (NodeDown)", .ending = true, .reason = "NodeDown"}),
            "NodeDown");
  EXPECT_EQ(Ending({.phase = kEnded, .text = "NODE_FAIL (NodeDown)", .reason = "NodeDown"}), "NodeDown");
  EXPECT_EQ(Ending({.phase = kEnded, .text = "NODE_FAIL"}), "NODE_FAIL");
}

TEST_F(JobEndingTest, NewsThatComeAfterTheSignalAreWaitedFor) {
  EXPECT_EQ(Ending({.phase = kRuns, .text = "RUNNING"}, JobNews{.phase = kEnded, .text = "NODE_FAIL"}), "NODE_FAIL");
  EXPECT_EQ(paused_, 2 * kNewsPause);
}

TEST_F(JobEndingTest, ASignalAloneIsNoEnd) {
  EXPECT_EQ(Ending({.phase = kRuns, .text = "RUNNING"}), std::nullopt);
  EXPECT_EQ(paused_, kNewsPatience);
}

TEST_F(JobEndingTest, TheEndOfItsTimeIsNoneOfThese) {
  EXPECT_EQ(Ending({.phase = kEnded, .text = "TIMEOUT", .time_over = true}), std::nullopt);
  EXPECT_EQ(paused_, absl::ZeroDuration());
}

TEST_F(JobEndingTest, AnEngineThatDoesNotAnswerIsAskedOnce) {
  played_.silence = absl::UnavailableError("no answer");
  EXPECT_EQ(Ending({.phase = kEnded, .text = "NODE_FAIL"}), std::nullopt);
  EXPECT_EQ(played_.looks, 1);
}

}  // namespace
}  // namespace muster::job_ending_test
