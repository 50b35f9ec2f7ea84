// What is said of an operation of a group that waits for another worker: on the status page (the track's waiting_for)
// as soon as the Collective tells, in the log from ten seconds on. Used by whichever thread calls the group, one at a
// time.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/observe/track.h"

namespace muster {

class GroupWait {
 public:
  // `track`, which may be null, must outlive it. `patience`: how long the group waits at all.
  GroupWait(Track* track, absl::Duration patience) : track_(track), patience_(patience) {}

  // As Collective::OnWait.
  void operator()(const std::string& whom, absl::Duration waited, const absl::Status& ended);

 private:
  Track* track_;
  absl::Duration patience_;
  std::string shown_;   // on the status page; empty: nobody
  std::string logged_;  // of the wait that lasts; empty: not yet
  absl::Duration next_log_;
};

}  // namespace muster
