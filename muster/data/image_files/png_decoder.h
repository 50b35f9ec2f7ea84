// Decodes PNG files of every kind that libpng knows: palettes, 1 to 16 bits, interlaced, transparent. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/data/image_files/decoded_image.h"

namespace muster {

// Reuses the memory of `into`, which gets as many channels as the file has colours and alpha; palettes become colours,
// 16 bits become 8. DataLoss, naming the file: it isn't PNG, or is damaged.
[[nodiscard]] absl::Status DecodePng(std::string_view content, const std::string& name, AcceptImageSize accept,
                                     DecodedImage& into);

}  // namespace muster
