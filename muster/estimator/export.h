// A trained model as files that need no muster: model.safetensors with the variables under their names, and
// signature.json with what goes in, what comes out and, where the model function says so (EstimatorSpec::
// export_program), how one follows from the other. tools/load_export.py loads both into torch. docs/export.md has the
// format key by key.
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

// One feature that the model is asked with: its shape without the batch.
struct ExportInput {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
};
using ExportInputs = std::map<std::string, ExportInput>;

// Writes DIRECTORY/<seconds since 1970>, under a temporary name until it is whole; returns its path. Two in one second
// have numbers that follow. All of the checkpoint's variables are written, tables of rows as a whole; one at a time is
// held in memory. Errors: the file system's and the reader's; InvalidArgument: no inputs, a name or an extent that none
// has, a step of the program that reads what isn't there.
absl::StatusOr<std::string> WriteExport(FileSystem& files, const std::string& directory, absl::Time now,
                                        const CheckpointReader& checkpoint, const EstimatorSpec& spec,
                                        const ExportInputs& inputs);

// Numbers of the exports in DIRECTORY, oldest first. A directory that isn't there has none.
absl::StatusOr<std::vector<int64_t>> ListExports(FileSystem& files, const std::string& directory);

// Removes all but the newest `keep` exports of DIRECTORY; 0 keeps all.
[[nodiscard]] absl::Status RemoveOldExports(FileSystem& files, const std::string& directory, int keep);

}  // namespace muster
