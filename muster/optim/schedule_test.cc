#include "muster/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster::schedule_test {
namespace {

// Expected values are computed by hand from the formulas in TensorFlow's documentation.
TEST(ScheduleTest, Constant) {
  EXPECT_EQ(LearningRateAt({}, 0.1, 0), 0.1);
  EXPECT_EQ(LearningRateAt({}, 0.1, std::numeric_limits<int64_t>::max()), 0.1);
}

TEST(ScheduleTest, Step) {
  const ScheduleSpec schedule = {.kind = ScheduleKind::kStep, .decay_steps = 10, .decay_rate = 0.5};
  EXPECT_EQ(LearningRateAt(schedule, 8, -3), 8);
  EXPECT_EQ(LearningRateAt(schedule, 8, 9), 8);
  EXPECT_EQ(LearningRateAt(schedule, 8, 10), 4);
  EXPECT_EQ(LearningRateAt(schedule, 8, 35), 1);
}

TEST(ScheduleTest, Exponential) {
  const ScheduleSpec schedule = {.kind = ScheduleKind::kExponential, .decay_steps = 10, .decay_rate = 0.25};
  EXPECT_EQ(LearningRateAt(schedule, 8, 0), 8);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 8, 5), 4);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 8, 10), 2);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 8, 15), 1);
}

TEST(ScheduleTest, Polynomial) {
  const ScheduleSpec line = {.kind = ScheduleKind::kPolynomial, .decay_steps = 10, .end_learning_rate = 1};
  EXPECT_EQ(LearningRateAt(line, 5, 0), 5);
  EXPECT_DOUBLE_EQ(LearningRateAt(line, 5, 5), 3);
  EXPECT_EQ(LearningRateAt(line, 5, 10), 1);
  EXPECT_EQ(LearningRateAt(line, 5, 1000), 1);
  const ScheduleSpec square = {
      .kind = ScheduleKind::kPolynomial, .decay_steps = 10, .end_learning_rate = 1, .power = 2};
  EXPECT_DOUBLE_EQ(LearningRateAt(square, 5, 5), 2);
  // Step 15 of a cycle stretched to 20, step 25 of one stretched to 30.
  const ScheduleSpec cycle = {
      .kind = ScheduleKind::kPolynomial, .decay_steps = 10, .end_learning_rate = 1, .cycle = true};
  EXPECT_EQ(LearningRateAt(cycle, 5, 0), 5);
  EXPECT_EQ(LearningRateAt(cycle, 5, 10), 1);
  EXPECT_DOUBLE_EQ(LearningRateAt(cycle, 5, 15), 2);
  EXPECT_DOUBLE_EQ(LearningRateAt(cycle, 7, 25), 2);
}

TEST(ScheduleTest, Cosine) {
  const ScheduleSpec schedule = {.kind = ScheduleKind::kCosine, .decay_steps = 12, .alpha = 0.2};
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 10, 0), 10);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 10, 4), 8) << "cos 60° is a half: 0.8 · 0.75 + 0.2";
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 10, 6), 6);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 10, 12), 2);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 10, 99), 2);
}

TEST(ScheduleTest, WarmUpRisesInALineAndTheScheduleStartsWhereItEnds) {
  const ScheduleSpec schedule = {
      .kind = ScheduleKind::kStep, .decay_steps = 10, .decay_rate = 0.5, .warmup_steps = 4, .warmup_from = 0.5};
  EXPECT_EQ(LearningRateAt(schedule, 8, 0), 4);
  EXPECT_EQ(LearningRateAt(schedule, 8, 2), 6);
  EXPECT_EQ(LearningRateAt(schedule, 8, 3), 7);
  EXPECT_EQ(LearningRateAt(schedule, 8, 4), 8);
  EXPECT_EQ(LearningRateAt(schedule, 8, 13), 8);
  EXPECT_EQ(LearningRateAt(schedule, 8, 14), 4);
  EXPECT_EQ(LearningRateAt({.warmup_steps = 4}, 8, 0), 0);
  EXPECT_EQ(LearningRateAt({.warmup_steps = 4}, 8, 1), 2);
  EXPECT_EQ(LearningRateAt({.warmup_steps = 4}, 8, 5), 8);
}

TEST(ScheduleTest, RefusalsNameTheFieldItsValueAndWhatIsAccepted) {
  const auto refusal = [](const ScheduleSpec& schedule) {
    const absl::Status status = CheckSchedule(schedule);
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.decay_steps = -1, .decay_rate = -1}), "") << "not used, not judged";
  EXPECT_EQ(refusal({.kind = ScheduleKind::kCosine}), "schedule cosine: decay_steps is 0; accepted: at least 1");
  EXPECT_EQ(refusal({.warmup_steps = -1}), "schedule constant: warmup_steps is -1; accepted: at least 0");
  EXPECT_EQ(refusal({.warmup_from = -1}),
            "schedule constant: warmup_from is -1; accepted: a finite number, at least 0");
  EXPECT_EQ(refusal({.kind = ScheduleKind::kExponential, .decay_steps = 1, .decay_rate = 0}),
            "schedule exponential: decay_rate is 0; accepted: a finite number above 0");
  EXPECT_EQ(refusal({.kind = ScheduleKind::kPolynomial, .decay_steps = 1, .end_learning_rate = -2}),
            "schedule polynomial: end_learning_rate is -2; accepted: a finite number, at least 0");
  EXPECT_EQ(refusal({.kind = ScheduleKind::kPolynomial, .decay_steps = 1, .power = 0}),
            "schedule polynomial: power is 0; accepted: a finite number above 0");
  EXPECT_EQ(refusal({.kind = ScheduleKind::kCosine, .decay_steps = 1, .alpha = 1.5}),
            "schedule cosine: alpha is 1.5; accepted: at least 0 and at most 1");
  EXPECT_EQ(refusal({.kind = static_cast<ScheduleKind>(9)}),
            "unknown schedule number 9; accepted: 0 (constant), 1 (step), 2 (exponential), 3 (polynomial), 4 (cosine)");
}

}  // namespace
}  // namespace muster::schedule_test
