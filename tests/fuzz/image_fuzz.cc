// Any bytes as a picture's file (PNG, JPEG, PGM, PPM) give an error, or as many pixels as the size says.
#include <vector>

#include "muster/base/check.h"
#include "muster/data/image_files/image_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A large picture takes long and tests nothing more.
  const auto accept = [](const muster::ImageSize& found) {
    MUSTER_CHECK(found.height > 0 && found.width > 0);
    return found.height <= 64 && found.width <= 64 ? absl::OkStatus() : absl::OutOfRangeError("too large");
  };
  muster::DecodedImage image;
  if (!muster::DecodeImage({reinterpret_cast<const char*>(data), size}, "fuzz", accept, image).ok()) return 0;
  const size_t plane = image.size.height * image.size.width;
  MUSTER_CHECK(image.channels >= 1 && image.channels <= 4 && image.pixels.size() == plane * image.channels);
  for (const size_t channels : {size_t{1}, size_t{3}}) {
    std::vector<uint8_t> planes(plane * channels);
    muster::FillPlanes(image, channels, planes);
  }
  return 0;
}
