// The timer that is made from a pair of options, "every so many steps" or "every so often", as most hooks have one.
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/wrong_configuration.h"
#include "muster/train/hooks/second_or_step_timer.h"

namespace muster {

// Makes a timer from the two options, which error texts call `names`. InvalidArgument, naming the hook, unless exactly
// one is given and it is positive.
inline absl::StatusOr<SecondOrStepTimer> MakeTimer(const char* hook, const std::optional<int64_t>& steps,
                                                   const std::optional<absl::Duration>& interval, const char* names) {
  if (steps.has_value() == interval.has_value())
    return WrongOptionError(absl::StrCat(hook, ": exactly one of ", names, " must be given"));
  if ((steps && *steps <= 0) || (interval && *interval <= absl::ZeroDuration()))
    return WrongOptionError(absl::StrCat(hook, ": one of ", names, " must be given and be positive"));
  return steps ? SecondOrStepTimer::EverySteps(*steps) : SecondOrStepTimer::Every(*interval);
}

// The same with a default: every `usual` steps if neither is given.
inline absl::StatusOr<SecondOrStepTimer> MakeTimerOr(const char* hook, int64_t usual,
                                                     const std::optional<int64_t>& steps,
                                                     const std::optional<absl::Duration>& interval, const char* names) {
  if (!steps && !interval) return SecondOrStepTimer::EverySteps(usual);
  if (steps && interval) return WrongOptionError(absl::StrCat(hook, ": give one of ", names, ", not both"));
  return MakeTimer(hook, steps, interval, names);
}

}  // namespace muster
