// Decides, unit by unit, which rows of an epoch a reader takes next; Dataset::ShareBy asks it. The implementation that
// shares an epoch among the workers of a job is store/work/work_queue_client.h; docs/work_queue.md has the protocol.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// The places begin ... end - 1 of the epoch's order of rows (for example Shuffle's).
struct WorkUnit {
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;

  bool operator==(const WorkUnit&) const = default;
};

// Thread-safe: the thread that prepares batches takes units; the thread that trains begins and reports them, in the
// order in which they were taken, one batch per unit.
class WorkSource {
 public:
  virtual ~WorkSource() = default;
  // Returns the next unit for this reader; nullopt: every unit of the last epoch is done. Blocks while all remaining
  // units are with other readers, which may still lose them. Errors: Unavailable: the source of the work can't be
  // reached; Aborted: it no longer knows this reader, which must join again and may then ask again; Cancelled.
  virtual absl::StatusOr<std::optional<WorkUnit>> Take() = 0;
  // Called when the batch of the oldest unit not yet begun is about to be trained on (the last batch, if there are
  // several): the next counted update contains it, and no reader gets the unit again. False: this reader has lost the
  // unit to another one, and must skip the batch.
  virtual bool Begin() { return true; }
  // Says that the step of the oldest unit not yet reported is over. (Its update may be counted later, with those of a
  // window.)
  [[nodiscard]] virtual absl::Status Done() = 0;
  // A Take that waits, and every later one, returns Cancelled.
  virtual void Stop() = 0;
};

}  // namespace muster
