#include "muster/summary/png.h"

#include <gmock/gmock.h>
#include <png.h>

#include <numeric>
#include <vector>

namespace muster::png_test {
namespace {

using ::testing::HasSubstr;

// Returns what libpng's reader decodes, in the format of the original pixels.
std::vector<uint8_t> Decode(const PngImage& encoded, png_uint_32 format) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&png, encoded.bytes.data(), encoded.bytes.size()), 0) << png.message;
  EXPECT_EQ(png.height, static_cast<png_uint_32>(encoded.height));
  EXPECT_EQ(png.width, static_cast<png_uint_32>(encoded.width));
  EXPECT_EQ(png.format & ~PNG_FORMAT_FLAG_COLORMAP, format);
  png.format = format;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(png));
  EXPECT_NE(png_image_finish_read(&png, nullptr, pixels.data(), 0, nullptr), 0) << png.message;
  return pixels;
}

TEST(EncodePngTest, EveryPixelComesBack) {
  const png_uint_32 formats[] = {0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  for (int channels = 1; channels <= 4; ++channels) {
    std::vector<uint8_t> pixels(3 * 5 * channels);
    std::iota(pixels.begin(), pixels.end(), 190);  // wraps from 255 to 0
    const auto png = EncodePng({.height = 3, .width = 5, .channels = channels, .pixels = pixels}).value();
    EXPECT_EQ(png.bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
    EXPECT_EQ(png.channels, channels);
    EXPECT_EQ(Decode(png, formats[channels]), pixels) << channels << " channels";
  }
}

TEST(EncodePngTest, NoiseNeedsMoreRoomThanItsPixels) {
  std::vector<uint8_t> pixels(256 * 3);
  uint32_t state = 1;
  for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  const auto png = EncodePng({.height = 16, .width = 16, .channels = 3, .pixels = pixels}).value();
  EXPECT_EQ(Decode(png, PNG_FORMAT_RGB), pixels);
}

TEST(EncodePngTest, WhatIsNoPictureIsNamed) {
  const std::vector<uint8_t> pixels(60);
  const auto message = [&](int height, int width, int channels) {
    const auto png = EncodePng({.height = height, .width = width, .channels = channels, .pixels = pixels});
    EXPECT_TRUE(absl::IsInvalidArgument(png.status())) << png.status();
    return std::string(png.status().message());
  };
  EXPECT_THAT(message(3, 4, 5), HasSubstr("5 channels; accepted: 1 (grey)"));
  EXPECT_THAT(message(0, 4, 1), HasSubstr("0 high and 4 wide"));
  EXPECT_THAT(message(3, 4, 3), HasSubstr("has 60 bytes, not 36"));
}

}  // namespace
}  // namespace muster::png_test
