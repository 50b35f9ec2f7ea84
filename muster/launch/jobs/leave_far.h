// Before another attempt of a run whose job shares no folder with this host (docs/far_homes.md). Blocks. Stateless.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/jobs/job_watch.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"

namespace muster {

// How long another attempt waits for the output of the last one.
inline constexpr absl::Duration kLeavePatienceOfFar = absl::Seconds(10);

// Waits by `pause` until its collector has fetched all from the job of the run's last attempt. FailedPrecondition: that
// takes longer; the job stays, as the next attempt may want what is in it. A job that has never got the experiment has
// nothing: it is ended.
[[nodiscard]] absl::Status LeaveFar(const Home& home, JobWatch& jobs, const ExperimentId& id, const Clock& clock,
                                    const std::function<void(absl::Duration)>& pause);

// Whether another attempt of this run, or of what hasn't finished of this grid, would find what the last one has
// written. `next`: what it asks for. `engine`: of whose jobs it is to be; null: of none. FailedPrecondition says where
// that is, and what would be accepted. A job that shares no folder with this host sees no OUTPUT_DIR of its home;
// engines that do find out by themselves.
[[nodiscard]] absl::Status CheckOutputIsFound(const Home& home, Registry& registry, const RunRecord& former,
                                              const NewExperiment& next, JobEngine* engine);

}  // namespace muster
