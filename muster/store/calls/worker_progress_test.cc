#include "muster/store/calls/worker_progress.h"

#include <gtest/gtest.h>

namespace muster::worker_progress_test {
namespace {

class WorkerProgressTest : public ::testing::Test {
 protected:
  void Step(absl::Duration computes, absl::Duration waits = absl::ZeroDuration()) {
    now_ += computes;
    progress_.OnPush(now_);
    now_ += waits;
    progress_.OnAnswer(now_);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  WorkerProgress progress_;
};

TEST_F(WorkerProgressTest, AStepIsFromAnAnswerToTheNextPushAndTheMedianCounts) {
  EXPECT_EQ(progress_.steps(), 0u);
  Step(absl::Minutes(3));
  EXPECT_EQ(progress_.steps(), 1u);
  Step(absl::Minutes(2), absl::Seconds(30));
  EXPECT_EQ(progress_.step(), absl::ZeroDuration()) << "the first two compile";
  Step(absl::Seconds(1));
  EXPECT_EQ(progress_.step(), absl::Seconds(1)) << "what it waits for others isn't its own";
  Step(absl::Seconds(100));
  Step(absl::Seconds(2));
  EXPECT_EQ(progress_.step(), absl::Seconds(2));
  for (int i = 0; i < 32; ++i) Step(absl::Seconds(7));
  EXPECT_EQ(progress_.step(), absl::Seconds(7)) << "the last 32";
  EXPECT_EQ(progress_.steps(), 37u);
}

TEST_F(WorkerProgressTest, ScopesNestAndAreNoStep) {
  Step(absl::Seconds(1));
  Step(absl::Seconds(1));
  Step(absl::Seconds(1));
  {
    const WorkerProgress::Busy saving(progress_, "saving");
    EXPECT_EQ(progress_.busy(), "saving");
    {
      const WorkerProgress::Busy evaluating(progress_, "evaluating");
      EXPECT_EQ(progress_.busy(), "evaluating");
    }
    EXPECT_EQ(progress_.busy(), "saving");
    now_ += absl::Hours(1);
  }
  EXPECT_EQ(progress_.busy(), "");
  Step(absl::Seconds(1));
  EXPECT_EQ(progress_.step(), absl::Seconds(1));
}

TEST_F(WorkerProgressTest, AProgramThatNumbersItsWordsDoesNotFillTheMemory) {
  for (int i = 0; i < 1000; ++i) {
    const WorkerProgress::Busy busy(progress_, "evaluation " + std::to_string(i));
    EXPECT_EQ(progress_.busy(), i < 64 ? "evaluation " + std::to_string(i) : "busy");
  }
  const WorkerProgress::Busy nameless(progress_, "");
  EXPECT_EQ(progress_.busy(), "busy");
}

}  // namespace
}  // namespace muster::worker_progress_test
