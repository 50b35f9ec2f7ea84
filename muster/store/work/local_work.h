// The work queue of a process that is its own cluster: does what a WorkQueueClient does, but without messages, because
// the training thread drives the store's loop. Nobody else takes units, so nothing ever waits. Thread-safe.
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
  // `queue` is that of the process's own store, `tally` that of its client. `spec` must be valid.
  LocalWork(std::shared_ptr<WorkQueue> queue, std::shared_ptr<WorkTally> tally, WorkSpec spec);

  // Errors: Cancelled; InvalidArgument: this process already shares out something else.
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
