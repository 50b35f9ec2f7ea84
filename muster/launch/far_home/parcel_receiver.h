// The job's side of sending (docs/far_homes.md): takes the parcel's pieces, and puts its files in their places. What
// comes is checked: names are only those that a parcel may have. Blocking; processes take turns by a lock.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/far_home/far_message.h"
#include "muster/launch/registry/home.h"

namespace muster {

// Answers a question of `muster home receive`. InvalidArgument: no such question, or the parcel has what it may not
// have. DataLoss: its checksum is another.
absl::StatusOr<FarMessage> AnswerReceive(const Home& home, const ExperimentId& id, const FarMessage& question);

// Returns whether the parcel for this job has come; an empty `job`: for any.
bool HasReceived(const Home& home, const ExperimentId& id, const std::string& job);

// Waits by `pause` until it has come. DeadlineExceeded: for `patience` nothing new came; says what to do.
[[nodiscard]] absl::Status AwaitParcel(const Home& home, const ExperimentId& id, const std::string& job,
                                       absl::Duration patience, const Clock& clock,
                                       const std::function<void(absl::Duration)>& pause);

// Keeps the job, after its supervisor has ended, until all has been fetched from it, at most `keep`. Returns whether it
// was. `named`: the job; empty: that whose parcel has come. Waits by `pause`.
bool Linger(const Home& home, const ExperimentId& id, const std::string& named, absl::Duration keep, const Clock& clock,
            const std::function<void(absl::Duration)>& pause);

}  // namespace muster
