#include "muster/data/image_files/png_decoder.h"

#include <png.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// Deflate expands at most 1032-fold (zlib's technical note), and a byte holds at most 8 pixels.
constexpr uint64_t kMostPngPixelsOfAByte = uint64_t{1032} * 8;

class PngFile {
 public:
  explicit PngFile(const std::string& name) : name_(name) { png_.version = PNG_IMAGE_VERSION; }
  ~PngFile() { png_image_free(&png_); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  absl::Status ReadHeader(std::string_view content) {
    if (png_image_begin_read_from_memory(&png_, content.data(), content.size()) == 0) return Damaged();
    if (uint64_t{png_.height} * png_.width > content.size() * kMostPngPixelsOfAByte) {
      return absl::DataLossError(absl::StrCat(name_, ": the file is cut short or its header is wrong: ", png_.height,
                                              " x ", png_.width, " pixels need more bytes than follow"));
    }
    png_.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // else 16-bit files that don't say otherwise count as linear
    png_.format &= PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA;
    return absl::OkStatus();
  }
  absl::Status ReadPixels(DecodedImage& into) {
    into.channels = PNG_IMAGE_PIXEL_CHANNELS(png_.format);
    into.pixels.resize(into.size.height * into.size.width * into.channels);
    if (png_image_finish_read(&png_, /*background=*/nullptr, into.pixels.data(), /*row_stride=*/0,
                              /*colormap=*/nullptr) == 0)
      return Damaged();
    return absl::OkStatus();
  }
  ImageSize size() const { return {png_.height, png_.width}; }

 private:
  absl::Status Damaged() const {
    return absl::DataLossError(absl::StrCat(name_, ": the PNG data are damaged: ", png_.message));
  }

  const std::string& name_;
  png_image png_ = {};
};

}  // namespace

absl::Status DecodePng(std::string_view content, const std::string& name, AcceptImageSize accept, DecodedImage& into) {
  PngFile file(name);
  RETURN_IF_ERROR(file.ReadHeader(content));
  into.size = file.size();
  RETURN_IF_ERROR(accept(into.size));
  return file.ReadPixels(into);
}

}  // namespace muster
