// A trained model as files that need no muster: model.safetensors with the variables under their names, and
// signature.json with what goes in, what comes out and, where the model function says so (EstimatorSpec::
// export_program), how one follows from the other. tools/load_export.py loads both into torch.
// docs/export.md has the format key by key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/dtype.h"
#include "muster/base/file_system.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/estimator/model_fn.h"

namespace muster {

// One feature that the model is asked with: its shape without the batch.
struct ExportInput {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
};
using ExportInputs = std::map<std::string, ExportInput>;

// Writes DIRECTORY/<seconds since 1970>, under a temporary name until it is whole; returns its path. Two in one second
// have numbers that follow. Errors: the file system's; InvalidArgument: no inputs, an export output whose prediction
// isn't there.
absl::StatusOr<std::string> WriteExport(FileSystem& files, const std::string& directory, absl::Time now,
                                        const CheckpointReader& checkpoint, const EstimatorSpec& spec,
                                        const ExportInputs& inputs);

}  // namespace muster
