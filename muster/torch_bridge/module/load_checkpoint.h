// A checkpoint's values in a module, without a cluster: what evaluates, predicts and exports. Blocks for as long as the
// disk does. Not thread-safe: used by the thread that owns the module.
#pragma once

#include "absl/status/status.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/torch_bridge/module/module_source.h"

namespace muster {

// Variables and buffers of the source's module, where it computes (ModuleSource::ComputeOn). Tables of rows are then in
// this process's memory, as a whole, for as long as the source lives. FailedPrecondition: the checkpoint is of another
// model; names the variable. Else the reader's errors.
[[nodiscard]] absl::Status LoadCheckpoint(ModuleSource& source, const CheckpointReader& checkpoint);

}  // namespace muster
