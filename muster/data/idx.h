// Reads IDX files, the format of the MNIST distribution: four bytes of magic (0, 0, element type, number of
// dimensions), each dimension as a big-endian 32-bit number, then the elements, last dimension fastest. Supports only
// unsigned bytes, as MNIST and its relatives (Fashion-MNIST, EMNIST, KMNIST) use nothing else. Gzipped and plain files
// are told apart by content, since browsers often unpack downloads without removing ".gz". Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"

namespace muster {

struct IdxArray {
  std::vector<size_t> shape;      // 1 to 4 dimensions, none of them 0
  std::vector<uint8_t> elements;  // as many as the product of `shape`
};

// NotFound if there is no such file; InvalidArgument, naming it, if it isn't IDX of unsigned bytes; DataLoss if it ends
// too early, goes on too long, or its compressed data are damaged. Never allocates more than the file's size can hold.
absl::StatusOr<IdxArray> ReadIdx(FileSystem& files, const std::string& path);

// Does the same with the content of a file called `name`.
absl::StatusOr<IdxArray> ParseIdx(std::string_view content, const std::string& name);

}  // namespace muster
