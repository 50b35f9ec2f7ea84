// The work queue of a process that is its own cluster: what a WorkQueueClient does, without messages, for the thread
// that trains drives the store's loop. Nobody else takes anything, so nothing is ever waited for. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/data/work_source.h"
#include "muster/store/work/work_queue.h"
#include "muster/store/work/work_tally.h"

namespace muster {

class LocalWork final : public WorkSource {
 public:
  // `queue`: that of the process's own store. `tally`: its client's. `spec` is valid.
  LocalWork(std::shared_ptr<WorkQueue> queue, std::shared_ptr<WorkTally> tally, WorkSpec spec);

  // Errors: Cancelled; InvalidArgument, something else is shared out in this process already.
  absl::StatusOr<std::optional<WorkUnit>> Take() override;
  bool Begin() override { return tally_->Begin(); }
  [[nodiscard]] absl::Status Done() override;
  void Stop() override { stopped_ = true; }

 private:
  const std::shared_ptr<WorkQueue> queue_;
  const std::shared_ptr<WorkTally> tally_;
  const WorkSpec spec_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace muster
