// Decodes binary PGM and PPM files (P5, grey; P6, RGB), the plain format of scientific tools: "P5", width, height, the
// largest value (up to 65535), one blank, then the rows, with one byte per value or, if the largest is above 255, two,
// high byte first. Comments (# to the end of the line) may stand between the numbers. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/data/image_files/decoded_image.h"

namespace muster {

// Scales values to 0 ... 255. Reuses the memory of `into`. InvalidArgument, naming the file: it isn't P5 or P6, its
// header is wrong, a value is beyond the largest; DataLoss: it ends too early or goes on too long. Allocates nothing
// for pixels that aren't there.
[[nodiscard]] absl::Status DecodePnm(std::string_view content, const std::string& name, AcceptImageSize accept,
                                     DecodedImage& into);

}  // namespace muster
