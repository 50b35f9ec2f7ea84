#include "muster/summary/png.h"

#include <png.h>

#include <array>

#include "absl/strings/str_cat.h"

namespace muster {

absl::StatusOr<PngImage> EncodePng(const ImageView& image) {
  constexpr std::array<png_uint_32, 5> kFormats = {0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  if (image.channels < 1 || image.channels > 4)
    return absl::InvalidArgumentError(absl::StrCat(
        "an image has ", image.channels, " channels; accepted: 1 (grey), 2 (grey, alpha), 3 (RGB), 4 (RGBA)"));
  if (image.height < 1 || image.width < 1)
    return absl::InvalidArgumentError(absl::StrCat("an image is ", image.height, " high and ", image.width, " wide"));
  const size_t wanted = size_t{1} * image.height * image.width * image.channels;
  if (image.pixels.size() != wanted)
    return absl::InvalidArgumentError(absl::StrCat("an image of ", image.height, " x ", image.width, " x ",
                                                   image.channels, " has ", image.pixels.size(), " bytes, not ",
                                                   wanted));
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.height = image.height;
  png.width = image.width;
  png.format = kFormats[image.channels];
  PngImage encoded = {image.height, image.width, image.channels, {}};
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);  // so that one pass is enough
  encoded.bytes.resize(size);
  if (png_image_write_to_memory(&png, encoded.bytes.data(), &size, /*convert_to_8bit=*/0, image.pixels.data(),
                                /*row_stride=*/0, /*colormap=*/nullptr) == 0)
    return absl::InvalidArgumentError(absl::StrCat("cannot encode an image as PNG: ", png.message));
  encoded.bytes.resize(size);
  return encoded;
}

}  // namespace muster
