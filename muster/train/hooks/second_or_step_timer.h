// Fires every so many steps or so much time: at its first question, then at step ≥ last + steps or time ≥ last +
// interval; never twice for one step. At an earlier step than the last one an older checkpoint was loaded: that is a
// first question again, for the step may be far from where it was. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace muster {

class SecondOrStepTimer {
 public:
  static SecondOrStepTimer EverySteps(int64_t steps) { return SecondOrStepTimer(steps, std::nullopt); }
  static SecondOrStepTimer Every(absl::Duration interval) { return SecondOrStepTimer(std::nullopt, interval); }

  bool ShouldTriggerForStep(int64_t step, absl::Time now) const;
  struct Elapsed {
    absl::Duration time;
    int64_t steps = 0;
  };
  // Notes that it fired; what has passed since it fired before, nothing the first time and at an earlier step.
  std::optional<Elapsed> UpdateLastTriggered(int64_t step, absl::Time now);
  std::optional<int64_t> last_triggered_step() const { return last_step_; }

 private:
  SecondOrStepTimer(std::optional<int64_t> steps, std::optional<absl::Duration> interval)
      : every_steps_(steps), every_(interval) {}

  std::optional<int64_t> every_steps_;
  std::optional<absl::Duration> every_;
  std::optional<int64_t> last_step_;
  absl::Time last_time_;
};

}  // namespace muster
