#include "muster/data/image_files/image_file.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"
#include "muster/base/check.h"
#include "muster/data/image_files/jpeg_decoder.h"
#include "muster/data/image_files/png_decoder.h"
#include "muster/data/image_files/pnm.h"

namespace muster {
namespace {

// 16384 x 16384, which at four bytes a pixel is 1 GiB. A small file may claim any size.
constexpr size_t kMostImagePixels = size_t{1} << 28;

constexpr std::string_view kImageEndings[] = {".png", ".jpg", ".jpeg", ".pgm", ".ppm", ".pnm"};

using ImageDecoder = absl::Status (*)(std::string_view, const std::string&, AcceptImageSize, DecodedImage&);

// Returns null if no decoder knows the format.
ImageDecoder FindImageDecoder(std::string_view content) {
  if (content.substr(0, 8) == "\x89PNG\r\n\x1a\n") return &DecodePng;
  if (content.substr(0, 3) == "\xff\xd8\xff") return &DecodeJpeg;
  if (content.substr(0, 2) == "P5" || content.substr(0, 2) == "P6") return &DecodePnm;
  return nullptr;
}

uint8_t GreyOf(const uint8_t* rgb) {
  return static_cast<uint8_t>((299u * rgb[0] + 587u * rgb[1] + 114u * rgb[2] + 500u) / 1000u);
}

}  // namespace

bool IsImageName(std::string_view file) {
  for (const std::string_view ending : kImageEndings)
    if (absl::EndsWithIgnoreCase(AbslView(file), AbslView(ending))) return true;
  return false;
}

absl::Status DecodeImage(std::string_view content, const std::string& name, AcceptImageSize accept,
                         DecodedImage& into) {
  const ImageDecoder decode = FindImageDecoder(content);
  if (decode == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, content.empty() ? ": the file is empty" : ": the content isn't a picture",
                     "; accepted: PNG, JPEG, binary PGM (P5) and PPM (P6)"));
  }
  const auto check = [&](const ImageSize& size) -> absl::Status {
    if (size.height <= kMostImagePixels / size.width) return accept(size);
    return absl::InvalidArgumentError(absl::StrCat(name, ": a picture of ", size.height, " x ", size.width,
                                                   " pixels; accepted: up to ", kMostImagePixels));
  };
  return decode(content, name, check, into);
}

void FillPlanes(const DecodedImage& image, size_t channels, std::span<uint8_t> into) {
  MUSTER_CHECK(channels == 1 || channels == 3);
  const size_t plane = image.size.height * image.size.width;
  MUSTER_CHECK(image.pixels.size() == plane * image.channels && into.size() == plane * channels);
  const bool in_colours = image.channels >= 3;
  const uint8_t* from = image.pixels.data();
  for (size_t i = 0; i < plane; ++i, from += image.channels) {
    if (channels == 1) {
      into[i] = in_colours ? GreyOf(from) : *from;
    } else {
      for (size_t c = 0; c < 3; ++c) into[c * plane + i] = from[in_colours ? c : 0];
    }
  }
}

}  // namespace muster
