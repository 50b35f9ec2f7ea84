#include "muster/data/image_files/jpeg_decoder.h"

#include <cstdio>
// jpeglib.h needs what cstdio and cstddef declare.
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// libjpeg reports an error by calling a function that must not return. `base` is the first member, so that the pointer
// that libjpeg passes back also points to the whole struct.
struct JpegErrors {
  jpeg_error_mgr base = {};
  jmp_buf back = {};
  char message[JMSG_LENGTH_MAX] = {};
  bool cut_short = false;
};

JpegErrors& JpegErrorsOf(j_common_ptr info) { return *reinterpret_cast<JpegErrors*>(info->err); }

void JumpBackFromJpeg(j_common_ptr info) {
  JpegErrors& errors = JpegErrorsOf(info);
  errors.base.format_message(info, errors.message);
  longjmp(errors.back, 1);
}

// To libjpeg a missing end is only a warning: it paints the rest grey. Other warnings (stray bytes between segments)
// leave the picture whole, and are common.
void HearJpegWarning(j_common_ptr info, int level) {
  if (level >= 0) return;
  JpegErrors& errors = JpegErrorsOf(info);
  if (errors.base.msg_code == JWRN_JPEG_EOF || errors.base.msg_code == JWRN_HIT_MARKER) errors.cut_short = true;
}

// Functions that call setjmp have no objects with destructors: a jump would skip these.
class JpegFile {
 public:
  explicit JpegFile(std::string_view content) : content_(content) {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = JumpBackFromJpeg;
    errors_.base.emit_message = HearJpegWarning;
  }
  ~JpegFile() { jpeg_destroy_decompress(&info_); }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;

  // False if damaged; message() says how.
  bool ReadHeader() {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(content_.data()), content_.size());
    jpeg_read_header(&info_, /*require_image=*/TRUE);
    info_.out_color_space = info_.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    return true;
  }
  // `pixels` must have room for height x width x channels().
  bool ReadPixels(uint8_t* pixels) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = pixels + size_t{info_.output_scanline} * info_.output_width * info_.output_components;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  ImageSize size() const { return {info_.image_height, info_.image_width}; }
  size_t channels() const { return info_.num_components == 1 ? 1 : 3; }
  bool for_printers() const { return info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK; }
  bool cut_short() const { return errors_.cut_short; }
  const char* message() const { return errors_.message; }

 private:
  const std::string_view content_;
  JpegErrors errors_;
  jpeg_decompress_struct info_ = {};
};

absl::Status JpegDamaged(const std::string& name, const char* how) {
  return absl::DataLossError(absl::StrCat(name, ": the JPEG data are damaged: ", how));
}

}  // namespace

absl::Status DecodeJpeg(std::string_view content, const std::string& name, AcceptImageSize accept, DecodedImage& into) {
  JpegFile file(content);
  if (!file.ReadHeader()) return JpegDamaged(name, file.message());
  if (file.for_printers()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": a JPEG in CMYK colours; accepted: grey and RGB (save it as one of them)"));
  }
  into.size = file.size();
  into.channels = file.channels();
  RETURN_IF_ERROR(accept(into.size));
  into.pixels.resize(into.size.height * into.size.width * into.channels);
  if (!file.ReadPixels(into.pixels.data())) return JpegDamaged(name, file.message());
  if (file.cut_short()) return JpegDamaged(name, "it is cut short");
  return absl::OkStatus();
}

}  // namespace muster
