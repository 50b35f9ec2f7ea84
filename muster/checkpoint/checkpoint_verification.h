// Verifies a checkpoint file by file: reads everything, checks every checksum, and continues after the first error, so
// that a repair can address all of them. As thread-safe as the FileSystem.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/base/files/file_system.h"

namespace muster {

struct VerifiedFile {
  std::string path;
  uint64_t bytes = 0;   // 0 if it can't be read
  absl::Status status;  // DataLoss describes the damage and names the file
};

// Returns the manifest of the checkpoint `path` ("dir/model.ckpt-100"), then its parts in order. Checks the manifest's
// checksum, that the slices cover each variable and slot exactly, and that each slice is a tensor of its part with the
// right type and shape. Checks a part's presence, size, checksum and header.
std::vector<VerifiedFile> VerifyCheckpoint(FileSystem& files, const std::string& path);

}  // namespace muster
