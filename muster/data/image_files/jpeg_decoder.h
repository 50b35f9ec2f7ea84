// Decodes JPEG files, sequential and progressive, grey and in colours, by libjpeg. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/data/image_files/decoded_image.h"

namespace muster {

// Reuses the memory of `into`, which gets 1 or 3 channels. Ignores EXIF's orientation of the camera. DataLoss, naming
// the file: it isn't JPEG, is damaged or ends too early; InvalidArgument: its colours are for printers (CMYK).
[[nodiscard]] absl::Status DecodeJpeg(std::string_view content, const std::string& name, AcceptImageSize accept,
                                      DecodedImage& into);

}  // namespace muster
