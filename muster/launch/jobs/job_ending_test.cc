#include "muster/launch/jobs/job_ending.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "muster/launch/testing/played_job_engine.h"

namespace muster::job_ending_test {
namespace {

using What = EndingOfJob::What;
constexpr JobPhase kRuns = JobPhase::kRuns, kEnded = JobPhase::kEnded;

class JobEndingTest : public ::testing::Test {
 protected:
  // Returns the ending that is found, its reason in what(); `later`: what the engine says from the second pause on.
  What Ending(const JobNews& at_first, const std::optional<JobNews>& later = std::nullopt) {
    played_.news["7"] = at_first;
    PlayedJobEngine engine(played_);
    paused_ = absl::ZeroDuration();
    const OwnJob own = {.id = "7", .hosts = {}, .restarts = 2};
    const EndingOfJob ending = EndingOf(engine, own, clock_, [&](absl::Duration pause) {
      paused_ += pause;
      clock_.Advance(pause + slowness_);
      if (later.has_value() && paused_ >= 2 * pause) played_.news["7"] = *later;
    });
    reason_ = ending.reason;
    return ending.what;
  }

  SimulatedClock clock_;
  absl::Duration slowness_;  // of the engine
  PlayedJobs played_;
  absl::Duration paused_;
  std::string reason_;
};

TEST_F(JobEndingTest, AJobThatIsCancelledHasNoReason) {
  EXPECT_EQ(Ending({.phase = kRuns, .text = "COMPLETING", .ending = true}), What::kCancelled);
  EXPECT_EQ(Ending({.phase = kEnded, .text = "CANCELLED", .cancelled = true}), What::kCancelled);
  EXPECT_EQ(paused_, absl::ZeroDuration());
}

TEST_F(JobEndingTest, WhatIsSeenOfACancellationIsSaidBehindThatWord) {
  EXPECT_EQ(Ending({.phase = kRuns, .cancelled = true, .ending = true, .reason = "somebody has deleted its pod"}),
            What::kCancelled);
  EXPECT_EQ(reason_, ": somebody has deleted its pod");
  EXPECT_EQ(Ending({.phase = kEnded, .cancelled = true, .reason = "Dependency"}), What::kCancelled);
  EXPECT_EQ(reason_, "");
}

TEST_F(JobEndingTest, AnEndThatTheEngineMakesIsNamed) {
  EXPECT_EQ(Ending({.phase = kRuns, .text = "COMPLETING (NodeDown)", .ending = true, .reason = "NodeDown"}),
            What::kEnded);
  EXPECT_EQ(reason_, "NodeDown");
  EXPECT_EQ(Ending({.phase = kEnded, .text = "NODE_FAIL"}), What::kEnded);
  EXPECT_EQ(reason_, "NODE_FAIL");
}

TEST_F(JobEndingTest, AJobThatTheEngineBeginsAnewIsNotCancelled) {
  played_.restarts = 3;
  EXPECT_EQ(Ending({.phase = kRuns, .text = "COMPLETING", .ending = true}), What::kBegunAnew);
  EXPECT_EQ(Ending({.phase = JobPhase::kWaits, .text = "PENDING (BeginTime)"}), What::kBegunAnew);
  EXPECT_EQ(Ending({.phase = kRuns, .text = "RUNNING"}), What::kNotice);
  played_.restarts = 2;
  EXPECT_EQ(Ending({.phase = kRuns, .text = "COMPLETING", .ending = true}), What::kCancelled) << "it was anew before";
}

TEST_F(JobEndingTest, NewsThatComeAfterTheSignalAreWaitedFor) {
  EXPECT_EQ(Ending({.phase = kRuns, .text = "RUNNING"}, JobNews{.phase = kEnded, .text = "NODE_FAIL"}), What::kEnded);
  EXPECT_EQ(paused_, 2 * kNewsPause);
}

TEST_F(JobEndingTest, ASignalAloneIsANotice) {
  EXPECT_EQ(Ending({.phase = kRuns, .text = "RUNNING"}), What::kNotice);
  EXPECT_EQ(paused_, kNewsPatience);
}

// Slurm kills what hasn't ended 30 s after the signal.
TEST_F(JobEndingTest, TheTimeOfASlowAnswerCounts) {
  slowness_ = absl::Seconds(4);
  EXPECT_EQ(Ending({.phase = kRuns, .text = "RUNNING"}), What::kNotice);
  EXPECT_EQ(played_.looks, 2);
}

TEST_F(JobEndingTest, TheEndOfItsTimeIsANotice) {
  EXPECT_EQ(Ending({.phase = kEnded, .text = "TIMEOUT", .time_over = true}), What::kNotice);
  EXPECT_EQ(paused_, absl::ZeroDuration());
}

TEST_F(JobEndingTest, AnEngineThatDoesNotAnswerIsAskedOnce) {
  played_.silence = absl::UnavailableError("no answer");
  EXPECT_EQ(Ending({.phase = kEnded, .text = "NODE_FAIL"}), What::kUnknown);
  EXPECT_EQ(played_.looks, 1);
}

}  // namespace
}  // namespace muster::job_ending_test
