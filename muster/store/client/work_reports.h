// What a client's pushes report of the work queue (work_tally.h), and what the client tells ps 0 besides. Used by the
// client's thread.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "muster/store/calls/ps_calls.h"
#include "muster/store/work/work_tally.h"

namespace muster {

class WorkReports {
 public:
  explicit WorkReports(PsCalls& ps_calls) : ps_calls_(ps_calls) {}

  // From now on pushes bring the work that `tally` names.
  void Share(std::shared_ptr<WorkTally> tally);
  // Returns what the next push brings, and fixes it to what has begun by now, though the push may be made while the
  // next minibatch is computed. Empty: no work is shared out.
  WorkRange Seal() { return tally_ != nullptr ? tally_->Seal() : WorkRange(); }

  // The client has joined: uncounted work of an earlier join goes to others.
  [[nodiscard]] absl::Status Joined();
  // The push that brought the work was answered: `pushed`, or dropped.
  [[nodiscard]] absl::Status Settle(bool pushed);

 private:
  // Tells ps 0 which units were abandoned. Errors: those of StoreClient.
  [[nodiscard]] absl::Status GiveUp();

  PsCalls& ps_calls_;
  std::shared_ptr<WorkTally> tally_;  // null: no work is shared out
};

}  // namespace muster
