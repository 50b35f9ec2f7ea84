// Makes picture files with libpng and libjpeg, for tests of the decoders. A mistake ends the test program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
// jpeglib.h needs what cstdio declares.
#include <jpeglib.h>
#include <png.h>

#include <string>
#include <vector>

namespace muster {

struct PngKind {
  uint32_t width = 1;
  uint32_t height = 1;
  int depth = 8;
  int color = PNG_COLOR_TYPE_GRAY;
  int interlace = PNG_INTERLACE_NONE;
  std::vector<png_color> palette;
};

class PngWriter {
 public:
  explicit PngWriter(const PngKind& kind)
      : png_(png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr)),
        info_(png_create_info_struct(png_)) {
    png_set_write_fn(png_, &file_, &PngWriter::Append, nullptr);
    png_set_IHDR(png_, info_, kind.width, kind.height, kind.depth, kind.color, kind.interlace,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (!kind.palette.empty()) png_set_PLTE(png_, info_, kind.palette.data(), static_cast<int>(kind.palette.size()));
    png_write_info(png_, info_);
  }
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  // Adds packed rows, one after the other, and returns the file.
  std::string Finish(const std::vector<uint8_t>& rows, size_t height) {
    const int passes = png_set_interlace_handling(png_);
    for (int pass = 0; pass < passes; ++pass)
      for (size_t row = 0; row < height; ++row) png_write_row(png_, rows.data() + row * (rows.size() / height));
    png_write_end(png_, info_);
    return file_;
  }
  // Returns a file whose header promises pixels that don't follow.
  std::string FinishWithout() {
    const png_byte kind[] = {'I', 'D', 'A', 'T', 0};
    const png_byte data[] = {0x78, 0x9c, 3, 0, 0, 0, 0, 1};  // zlib's empty stream
    png_write_chunk(png_, kind, data, sizeof data);
    return file_;
  }

 private:
  static void Append(png_structp png, png_bytep data, size_t size) {
    static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), size);
  }

  std::string file_;
  png_structp png_;
  png_infop info_;
};

inline std::string EncodedPng(const PngKind& kind, const std::vector<uint8_t>& rows) {
  return PngWriter(kind).Finish(rows, kind.height);
}

struct JpegKind {
  uint32_t width = 1;
  uint32_t height = 1;
  J_COLOR_SPACE colors = JCS_RGB;
  int channels = 3;
  bool progressive = false;
};

// `pixels` is [height, width, channels].
inline std::string EncodedJpeg(const JpegKind& kind, const std::vector<uint8_t>& pixels) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = kind.width;
  info.image_height = kind.height;
  info.input_components = kind.channels;
  info.in_color_space = kind.colors;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  if (kind.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<uint8_t*>(pixels.data()) + size_t{info.next_scanline} * kind.width * kind.channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const std::string file(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return file;
}

}  // namespace muster
