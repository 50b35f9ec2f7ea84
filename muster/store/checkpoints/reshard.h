// A checkpoint written again for another number of parameter servers, or another placement or partitioning, without a
// cluster: what restoring onto them and saving would give, for models larger than this machine's memory. Reads and
// writes in pieces of a fixed size.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/cluster/placement/placement.h"

namespace muster {

struct ReshardOptions {
  int num_ps = 1;
  Placement placement = Placement::kRoundRobin;
  Partitioning partitioning;
};

// Writes the state of `from` into `directory` (made if missing) as one part a ps; the path of the new checkpoint.
// Global step, time, rule, variables, slots and extras stay. Step counters too, but where a new stripe covers old ones
// with different counters, it has the largest, as in every restore. Devices that variables were pinned to aren't in a
// checkpoint: all are placed by the strategy.
//
// AlreadyExists: the directory has a checkpoint. InvalidArgument: a placement that can't be. DataLoss: `from` can't be
// read. On any error there is no new checkpoint and no file of one, unless only the file `checkpoint` failed to be
// written. `save_id` is new for each attempt (docs/checkpoint_format.md).
absl::StatusOr<std::string> ReshardCheckpoint(FileSystem& files, const CheckpointReader& from,
                                              const std::string& directory, const ReshardOptions& options,
                                              std::string_view save_id);

}  // namespace muster
