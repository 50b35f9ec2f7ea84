// Reports that an operation of a group waits for another worker: on the status page (the track's waiting_for) as soon
// as the Collective tells, and in the log after ten seconds. Used by whichever thread calls the group, one at a time.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/retry_pause.h"
#include "muster/observe/track.h"

namespace muster {

class GroupWait {
 public:
  // `track` may be null, else it must outlive this. `patience` is how long the group waits at most.
  GroupWait(Track* track, absl::Duration patience) : track_(track), patience_(patience) {}

  // As Collective::OnWait.
  void operator()(const std::string& whom, absl::Duration waited, const absl::Status& ended);

 private:
  Track* track_;
  absl::Duration patience_;
  std::string shown_;   // on the status page; empty: nothing
  std::string logged_;  // the current wait, if already logged; else empty
  absl::Duration next_log_;
  RetryPause pause_{absl::Seconds(10), absl::Minutes(1)};  // between two lines
};

}  // namespace muster
