// Decodes pictures of every kind that a data set reads (PNG, JPEG, PGM, PPM), told apart by content, because names may
// be wrong. Pure but for its arguments; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/data/image_files/decoded_image.h"

namespace muster {

// True if a file of this name should hold a picture (.png, .jpg, .jpeg, .pgm, .ppm, .pnm, also in capitals).
bool IsImageName(std::string_view file);

// Decodes the content of a file called `name`. Errors: those of `accept`, DecodePng, DecodeJpeg and DecodePnm;
// InvalidArgument, naming the file: another kind, or more than 2^28 pixels.
[[nodiscard]] absl::Status DecodeImage(std::string_view content, const std::string& name, AcceptImageSize accept,
                                       DecodedImage& into);

// Writes the picture as planes, one after the other: `into` is [channels, height, width], channels 1 or 3. Drops alpha.
// Colours become grey by ITU-R BT.601's weights (0.299, 0.587, 0.114); grey becomes three equal colours.
void FillPlanes(const DecodedImage& image, size_t channels, std::span<uint8_t> into);

}  // namespace muster
