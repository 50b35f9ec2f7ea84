// A picture as it comes out of a file, before it is made what a data set wants of it. A plain value.
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

// A decoder asks once it knows the size, none of which is 0, and before it takes memory for the pixels: what a header
// says needn't be true. It ends with the error, if it is one.
using AcceptImageSize = absl::FunctionRef<absl::Status(const ImageSize& size)>;

}  // namespace muster
