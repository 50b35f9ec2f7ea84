// What becomes of a job, as its engine says it. Blocks. Not thread-safe.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/experiment/supervisor_setting.h"

namespace muster {

// A signal may come before the engine's news: it is asked again for so long.
inline constexpr absl::Duration kNewsPatience = absl::Seconds(1);
inline constexpr absl::Duration kNewsPause = absl::Milliseconds(100);

// Returns what becomes of the job `own`, for its supervisor, which has got a signal. Waits by `pause`, and asks no more
// once kNewsPatience is over by `clock`, which counts the time of an engine that answers slowly, too.
EndingOfJob EndingOf(JobEngine& engine, const OwnJob& own, const Clock& clock,
                     const std::function<void(absl::Duration)>& pause);

}  // namespace muster
