// Whether a checkpoint is whole, file by file: reads everything, every checksum, and looks on after the first mistake,
// so that somebody who has to repair knows all of them. Thread-safe as far as the FileSystem is.
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
  absl::Status status;  // DataLoss says what is wrong and names the file
};

// The manifest of the checkpoint `path` ("dir/model.ckpt-100"), then its parts in order. Of the manifest: its checksum,
// that the slices cover each variable and slot exactly, that each slice is a tensor of its part with the right type and
// shape. Of a part: presence, size, checksum, header.
std::vector<VerifiedFile> VerifyCheckpoint(FileSystem& files, const std::string& path);

}  // namespace muster
