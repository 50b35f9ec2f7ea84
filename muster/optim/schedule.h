// Learning-rate schedules: how the rate changes with global_step. A plain value that travels with the rule and is
// evaluated where the rule runs, so that workers needn't agree on the moment. TensorFlow's formulas
// (tf.compat.v1.train). Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace muster {

// The numbers are part of the wire format: never renumber.
enum class ScheduleKind : uint8_t {
  kConstant = 0,     // base
  kStep = 1,         // base · decay_rate^⌊step / decay_steps⌋: exponential_decay with staircase
  kExponential = 2,  // base · decay_rate^(step / decay_steps): exponential_decay
  kPolynomial = 3,   // (base − end) · (1 − step / decay_steps)^power + end: polynomial_decay
  kCosine = 4,       // base · ((1 − alpha) · ½ (1 + cos(π step / decay_steps)) + alpha): cosine_decay
};

struct ScheduleSpec {
  ScheduleKind kind = ScheduleKind::kConstant;
  int64_t decay_steps = 0;            // all but kConstant
  double decay_rate = 0.1;            // kStep, kExponential
  double end_learning_rate = 0.0001;  // kPolynomial: a rate, not a fraction of the base
  double power = 1;                   // kPolynomial
  bool cycle = false;                 // kPolynomial: stretch decay_steps to the next multiple when they have passed
  double alpha = 0;                   // kCosine: the remaining fraction of the base
  // For any kind: over this many steps the rate rises linearly from warmup_from · base to base. The schedule's own
  // steps are counted from the end of the warm-up, so that the two meet.
  int64_t warmup_steps = 0;
  double warmup_from = 0;

  bool operator==(const ScheduleSpec&) const = default;
};

// Returns "constant", "step", "exponential", "polynomial" or "cosine".
std::string ScheduleName(ScheduleKind kind);

// InvalidArgument names the field, its value and what is accepted.
[[nodiscard]] absl::Status CheckSchedule(const ScheduleSpec& schedule);

// Returns the rate of the update that increments `global_step`; a step below 0 counts as 0. The schedule must be valid.
double LearningRateAt(const ScheduleSpec& schedule, double base, int64_t global_step);

}  // namespace muster
