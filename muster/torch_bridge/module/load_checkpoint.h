// Loads a checkpoint's values into a model, without a cluster: for evaluation, prediction and export. Blocks for as
// long as the disk does. Not thread-safe: used by the thread that owns the model.
#pragma once

#include "absl/status/status.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/torch_bridge/module/tensor_source.h"

namespace muster {

// Loads the variables and buffers of the source, on the device where it computes (TensorSource::ComputeOn).
// Tables of rows are then wholly in this process's memory, for as long as the source lives. FailedPrecondition: the
// checkpoint is of another model; names the variable. Else the reader's errors.
[[nodiscard]] absl::Status LoadCheckpoint(TensorSource& source, const CheckpointReader& checkpoint);

}  // namespace muster
