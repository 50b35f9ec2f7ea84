// Why a job ends, as its engine says it. Blocks. Not thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/launch/engines/job_engine.h"

namespace muster {

// A signal may come before the engine's news: it is asked again for so long.
inline constexpr absl::Duration kNewsPatience = absl::Seconds(1);
inline constexpr absl::Duration kNewsPause = absl::Milliseconds(100);

// Returns why the engine ends the job, for its supervisor, which has got a signal: in the engine's words, "" for
// somebody who has cancelled it. nullopt: its time is over, or the engine doesn't end it or can't be asked. Waits by
// `pause`.
std::optional<std::string> EndingOf(JobEngine& engine, const std::string& id,
                                    const std::function<void(absl::Duration)>& pause);

}  // namespace muster
