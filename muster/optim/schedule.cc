#include "muster/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

template <typename Value>
absl::Status Refuse(ScheduleKind kind, const char* name, Value value, const char* accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat("schedule ", ScheduleName(kind), ": ", name, " is ", value, "; accepted: ", accepted));
}

bool AtLeastZero(double value) { return std::isfinite(value) && value >= 0; }

double Polynomial(const ScheduleSpec& schedule, double base, double step) {
  double decay_steps = static_cast<double>(schedule.decay_steps);
  if (schedule.cycle) {
    decay_steps *= std::max(1.0, std::ceil(step / decay_steps));
  } else {
    step = std::min(step, decay_steps);
  }
  return (base - schedule.end_learning_rate) * std::pow(1 - step / decay_steps, schedule.power) +
         schedule.end_learning_rate;
}

double Cosine(const ScheduleSpec& schedule, double base, double step) {
  const double done = std::min(1.0, step / static_cast<double>(schedule.decay_steps));
  const double fraction = 0.5 * (1 + std::cos(std::numbers::pi * done));
  return base * ((1 - schedule.alpha) * fraction + schedule.alpha);
}

}  // namespace

std::string ScheduleName(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kConstant:
      return "constant";
    case ScheduleKind::kStep:
      return "step";
    case ScheduleKind::kExponential:
      return "exponential";
    case ScheduleKind::kPolynomial:
      return "polynomial";
    case ScheduleKind::kCosine:
      return "cosine";
  }
  return absl::StrCat("schedule ", static_cast<int>(kind));
}

absl::Status CheckSchedule(const ScheduleSpec& schedule) {
  const ScheduleKind kind = schedule.kind;
  if (kind > ScheduleKind::kCosine)
    return absl::InvalidArgumentError(absl::StrCat("unknown schedule number ", static_cast<int>(kind),
                                                   "; accepted: 0 (constant), 1 (step), 2 (exponential), "
                                                   "3 (polynomial), 4 (cosine)"));
  if (schedule.warmup_steps < 0) return Refuse(kind, "warmup_steps", schedule.warmup_steps, "at least 0");
  if (!AtLeastZero(schedule.warmup_from))
    return Refuse(kind, "warmup_from", schedule.warmup_from, "a finite number, at least 0");
  if (kind == ScheduleKind::kConstant) return absl::OkStatus();
  if (schedule.decay_steps < 1) return Refuse(kind, "decay_steps", schedule.decay_steps, "at least 1");
  if (kind == ScheduleKind::kStep || kind == ScheduleKind::kExponential) {
    if (!std::isfinite(schedule.decay_rate) || schedule.decay_rate <= 0)
      return Refuse(kind, "decay_rate", schedule.decay_rate, "a finite number above 0");
  }
  if (kind == ScheduleKind::kPolynomial) {
    if (!AtLeastZero(schedule.end_learning_rate))
      return Refuse(kind, "end_learning_rate", schedule.end_learning_rate, "a finite number, at least 0");
    if (!std::isfinite(schedule.power) || schedule.power <= 0)
      return Refuse(kind, "power", schedule.power, "a finite number above 0");
  }
  if (kind == ScheduleKind::kCosine && !(schedule.alpha >= 0 && schedule.alpha <= 1))
    return Refuse(kind, "alpha", schedule.alpha, "at least 0 and at most 1");
  return absl::OkStatus();
}

double LearningRateAt(const ScheduleSpec& schedule, double base, int64_t global_step) {
  global_step = std::max<int64_t>(global_step, 0);
  if (global_step < schedule.warmup_steps) {
    const double done = static_cast<double>(global_step) / static_cast<double>(schedule.warmup_steps);
    return base * (schedule.warmup_from + (1 - schedule.warmup_from) * done);
  }
  const int64_t whole = global_step - schedule.warmup_steps;
  const double step = static_cast<double>(whole);
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return base;
    case ScheduleKind::kStep: {
      const int64_t steps_down = whole / schedule.decay_steps;
      return base * std::pow(schedule.decay_rate, static_cast<double>(steps_down));
    }
    case ScheduleKind::kExponential:
      return base * std::pow(schedule.decay_rate, step / static_cast<double>(schedule.decay_steps));
    case ScheduleKind::kPolynomial:
      return Polynomial(schedule, base, step);
    case ScheduleKind::kCosine:
      return Cosine(schedule, base, step);
  }
  return base;
}

}  // namespace muster
