// Lists the checkpoints of a directory as a table: what each holds, which one is the newest, which ones are damaged.
// Reads manifests and the sizes of parts, not their contents (checkpoint_verification.h does). As thread-safe as the
// FileSystem.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/checkpoint/manifest.h"

namespace muster {

struct ListedCheckpoint {
  std::string name;  // "model.ckpt-100"
  int64_t global_step = 0;
  bool newest = false;
  bool preserved = false;  // kept for ever (RetainNewest)
  absl::Status damage;     // a bad manifest, or a part that is missing or has another size; names the file
  Manifest manifest;       // empty if it is damaged
  uint64_t bytes = 0;      // of the manifest and, according to it, of all parts
};

// Returns them oldest first. NotFound: no such directory. DataLoss: the file `checkpoint` can't be understood.
absl::StatusOr<std::vector<ListedCheckpoint>> ListWithContents(FileSystem& files, const std::string& directory);

// Checks that the file of a part exists and has its size; DataLoss names it.
[[nodiscard]] absl::Status CheckPartSize(FileSystem& files, const std::string& path, const ManifestPart& part);

}  // namespace muster
