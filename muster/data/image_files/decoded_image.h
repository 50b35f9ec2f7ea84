// A picture as decoded from a file, before it is converted to what a data set needs. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace muster {

struct ImageSize {
  size_t height = 0;
  size_t width = 0;

  bool operator==(const ImageSize&) const = default;
};

struct DecodedImage {
  ImageSize size;
  size_t channels = 0;          // 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  std::vector<uint8_t> pixels;  // [height, width, channels]
};

// A decoder calls this when it knows the size (no side is 0) and before it allocates memory for the pixels, as a header
// may lie. If this returns an error, decoding ends with it.
using AcceptImageSize = absl::FunctionRef<absl::Status(const ImageSize& size)>;

}  // namespace muster
