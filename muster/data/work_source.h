// Who says which rows of an epoch a reader takes next, unit by unit: what Dataset::ShareBy asks. The implementation
// that shares an epoch among the workers of a job is store/work_queue_client.h; docs/work_queue.md has the protocol.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// Places begin ... end - 1 of the epoch's order of rows (whatever that order is: Shuffle's).
struct WorkUnit {
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;

  bool operator==(const WorkUnit&) const = default;
};

// Thread-safe: units are taken by the thread that makes batches ready, begun and reported by the one that trains, in
// the order in which they were taken: a batch for each unit.
class WorkSource {
 public:
  virtual ~WorkSource() = default;
  // The next unit for this reader; nothing: every unit of the last epoch is done. Blocks while all that is left is with
  // others, who may yet lose it. Errors: Unavailable, who shares the work is out of reach; Aborted, it doesn't know
  // this reader any more, who has to make itself known and may then ask again; Cancelled.
  virtual absl::StatusOr<std::optional<WorkUnit>> Take() = 0;
  // The batch of the oldest unit not yet begun is about to be trained on (of several batches the last): the next update
  // that is counted has it, and then nobody gets the unit again. False: this reader has lost the unit, and another gets
  // it: the batch is to be skipped.
  virtual bool Begin() { return true; }
  // The step of the oldest unit not yet reported is over. (Its update may be counted later only, with those of a
  // window.)
  [[nodiscard]] virtual absl::Status Done() = 0;
  // A Take that waits, and every later one, is Cancelled.
  virtual void Stop() = 0;
};

}  // namespace muster
