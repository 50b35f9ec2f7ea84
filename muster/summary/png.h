// Pictures as PNG, for TensorBoard's image tab. Encoded by libpng. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// 8 bits per channel, row by row from the top, no padding: [height, width, channels]. Borrowed.
struct ImageView {
  int height = 0;
  int width = 0;
  int channels = 0;  // 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA
  std::span<const uint8_t> pixels;
};

struct PngImage {
  int height = 0;
  int width = 0;
  int channels = 0;
  std::string bytes;
};

// InvalidArgument names the error: no pixels, an unknown number of channels, or a number of bytes that doesn't fit the
// size.
absl::StatusOr<PngImage> EncodePng(const ImageView& image);

}  // namespace muster
