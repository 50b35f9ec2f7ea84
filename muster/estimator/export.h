// Writes a trained model as files that need no muster: model.safetensors with the variables under their names, and
// signature.json with the inputs, the outputs and, if the model function provides it (EstimatorSpec::export_program),
// how the outputs are computed from the inputs. tools/load_export.py loads both into torch. docs/export.md describes
// the format key by key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/dtype.h"
#include "muster/base/files/file_system.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/estimator/model/model_fn.h"

namespace muster {

// An input feature of the exported model: its shape without the batch.
struct ExportInput {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
};
using ExportInputs = std::map<std::string, ExportInput>;

// Writes DIRECTORY/<seconds since 1970>, under a temporary name until it is complete. Returns its path. A second export
// in the same second gets the next number. Writes all of the checkpoint's variables, tables of rows as a whole; only
// one at a time is in memory. Errors: the file system's and the reader's; InvalidArgument: no inputs, an empty name, an
// extent below 1, a step of the program that reads something that doesn't exist.
absl::StatusOr<std::string> WriteExport(FileSystem& files, const std::string& directory, absl::Time now,
                                        const CheckpointReader& checkpoint, const EstimatorSpec& spec,
                                        const ExportInputs& inputs);

// Lists the numbers of the exports in DIRECTORY, oldest first. A missing directory has none.
absl::StatusOr<std::vector<int64_t>> ListExports(FileSystem& files, const std::string& directory);

// Removes all but the newest `keep` exports of DIRECTORY; 0 keeps all.
[[nodiscard]] absl::Status RemoveOldExports(FileSystem& files, const std::string& directory, int keep);

}  // namespace muster
