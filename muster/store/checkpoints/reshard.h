// Rewrites a checkpoint for another number of parameter servers, or another placement or partitioning, without a
// cluster. The result is what restoring onto them and saving would give; the model may be larger than this machine's
// memory. Reads and writes in pieces of a fixed size.
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

// Writes the state of `from` into `directory` (created if missing) as one part per ps; returns the path of the new
// checkpoint. Global step, time, rule, variables, slots and extras stay. So do step counters, except that a new stripe
// that covers old ones with different counters gets the largest, as in every restore. A checkpoint doesn't say which
// devices variables were pinned to: the strategy places all of them.
//
// AlreadyExists: the directory has a checkpoint. InvalidArgument: an impossible placement. DataLoss: `from` can't be
// read. On any error there is no new checkpoint and no file of one, unless only writing the file `checkpoint` failed.
// `save_id` must be new for each attempt (docs/checkpoint_format.md).
absl::StatusOr<std::string> ReshardCheckpoint(FileSystem& files, const CheckpointReader& from,
                                              const std::string& directory, const ReshardOptions& options,
                                              std::string_view save_id);

}  // namespace muster
