#include "muster/train/hooks/second_or_step_timer.h"

namespace muster {

bool SecondOrStepTimer::ShouldTriggerForStep(int64_t step, absl::Time now) const {
  if (!last_step_ || step < *last_step_) return true;
  if (step == *last_step_) return false;
  if (every_) return now >= last_time_ + *every_;
  return step >= *last_step_ + *every_steps_;
}

std::optional<SecondOrStepTimer::Elapsed> SecondOrStepTimer::UpdateLastTriggered(int64_t step, absl::Time now) {
  std::optional<Elapsed> elapsed;
  if (last_step_ && step >= *last_step_) elapsed = Elapsed{now - last_time_, step - *last_step_};
  last_step_ = step;
  last_time_ = now;
  return elapsed;
}

}  // namespace muster
