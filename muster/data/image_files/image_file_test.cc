#include "muster/data/image_files/image_file.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "muster/data/testing/encoded_images.h"

namespace muster::image_file_test {
namespace {

using ::testing::Each, ::testing::ElementsAre, ::testing::ElementsAreArray, ::testing::HasSubstr, ::testing::IsEmpty;

absl::Status Accept(const ImageSize&) { return absl::OkStatus(); }

DecodedImage Decoded(const std::string& content) {
  DecodedImage image;
  const absl::Status status = DecodeImage(content, "d/file", Accept, image);
  EXPECT_TRUE(status.ok()) << status;
  return image;
}

absl::Status Error(const std::string& content) {
  DecodedImage image;
  const absl::Status status = DecodeImage(content, "d/file", Accept, image);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), "d/file: ")) << status;
  return status;
}

std::vector<uint8_t> Noise(size_t size) {
  std::vector<uint8_t> noise(size);
  uint32_t state = 1;
  for (uint8_t& value : noise) value = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return noise;
}

const PngKind kColours = {.width = 2, .height = 2, .color = PNG_COLOR_TYPE_RGB};

TEST(ImageFileTest, NamesOfPicturesAreKnown) {
  for (const char* name : {"a.png", "b.JPG", "c.jpeg", "d.Pgm", "e.ppm", "f.pnm"}) EXPECT_TRUE(IsImageName(name));
  for (const char* name : {"a.txt", "png", "a.png.txt", "", "a.gif"}) EXPECT_FALSE(IsImageName(name));
}

TEST(ImageFileTest, PngOfEightBitsComesBackAsItIs) {
  const int colors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  for (size_t channels = 1; channels <= 4; ++channels) {
    for (const int interlace : {PNG_INTERLACE_NONE, PNG_INTERLACE_ADAM7}) {
      const std::vector<uint8_t> pixels = Noise(9 * 5 * channels);
      const DecodedImage image =
          Decoded(EncodedPng({.width = 9, .height = 5, .color = colors[channels - 1], .interlace = interlace}, pixels));
      EXPECT_EQ(image.size, (ImageSize{.height = 5, .width = 9}));
      EXPECT_EQ(image.channels, channels);
      EXPECT_THAT(image.pixels, ElementsAreArray(pixels)) << channels << " channels, interlace " << interlace;
    }
  }
}

TEST(ImageFileTest, PngOfOtherKindsBecomesEightBitsAndColours) {
  EXPECT_THAT(Decoded(EncodedPng({.width = 4, .height = 1, .depth = 1}, {0x50})).pixels, ElementsAre(0, 255, 0, 255));
  const DecodedImage palette = Decoded(EncodedPng(
      {.width = 2, .height = 1, .color = PNG_COLOR_TYPE_PALETTE, .palette = {{10, 20, 30}, {40, 50, 60}}}, {1, 0}));
  EXPECT_EQ(palette.channels, 3);
  EXPECT_THAT(palette.pixels, ElementsAre(40, 50, 60, 10, 20, 30));
  // Not treated as linear light, whose middle would be 188.
  EXPECT_THAT(Decoded(EncodedPng({.width = 3, .height = 1, .depth = 16}, {0, 0, 0x80, 0, 0xff, 0xff})).pixels,
              ElementsAre(0, 128, 255));
}

TEST(ImageFileTest, DamagedPngIsRefused) {
  const std::string whole = EncodedPng(kColours, Noise(12));
  for (size_t size = 8; size < whole.size() - 24; ++size)  // behind it are checksums and the end's own chunk
    EXPECT_TRUE(absl::IsDataLoss(Error(whole.substr(0, size)))) << size << " of " << whole.size();
  std::string flipped = whole;
  flipped[19] = static_cast<char>(flipped[19] ^ 1);  // in the width
  EXPECT_TRUE(absl::IsDataLoss(Error(flipped)));
}

TEST(ImageFileTest, APngThatPromisesMoreThanItsBytesCanHoldIsRefused) {
  const absl::Status error = Error(PngWriter({.width = 60000, .height = 60000}).FinishWithout());
  EXPECT_TRUE(absl::IsDataLoss(error)) << error;
  EXPECT_THAT(std::string(error.message()), HasSubstr("60000 x 60000 pixels need more bytes than follow"));
}

TEST(ImageFileTest, JpegIsReadNearly) {
  for (const bool progressive : {false, true}) {
    const DecodedImage grey = Decoded(
        EncodedJpeg({.width = 20, .height = 10, .colors = JCS_GRAYSCALE, .channels = 1, .progressive = progressive},
                    std::vector<uint8_t>(200, 90)));
    EXPECT_EQ(grey.size, (ImageSize{.height = 10, .width = 20}));
    EXPECT_EQ(grey.channels, 1);
    EXPECT_THAT(grey.pixels, Each(testing::AllOf(testing::Ge(89), testing::Le(91))));
    std::vector<uint8_t> pixels;
    for (int i = 0; i < 16 * 8; ++i) pixels.insert(pixels.end(), {200, 100, 50});
    const DecodedImage colours = Decoded(EncodedJpeg({.width = 16, .height = 8, .progressive = progressive}, pixels));
    EXPECT_EQ(colours.channels, 3);
    ASSERT_EQ(colours.pixels.size(), pixels.size());
    for (size_t i = 0; i < pixels.size(); ++i) EXPECT_LE(std::abs(colours.pixels[i] - pixels[i]), 3) << i;
  }
}

TEST(ImageFileTest, DamagedJpegIsRefused) {
  for (const bool progressive : {false, true}) {
    const std::string whole = EncodedJpeg({.width = 32, .height = 32, .progressive = progressive}, Noise(32 * 32 * 3));
    for (const size_t size : {size_t{4}, size_t{100}, whole.size() / 2, whole.size() - 2}) {
      const absl::Status error = Error(whole.substr(0, size));
      EXPECT_TRUE(absl::IsDataLoss(error)) << size << " of " << whole.size() << ": " << error;
      EXPECT_THAT(std::string(error.message()), HasSubstr("the JPEG data are damaged: "));
    }
  }
}

TEST(ImageFileTest, AJpegForPrintersIsRefused) {
  const absl::Status error =
      Error(EncodedJpeg({.width = 8, .height = 8, .colors = JCS_CMYK, .channels = 4}, Noise(8 * 8 * 4)));
  EXPECT_TRUE(absl::IsInvalidArgument(error)) << error;
  EXPECT_THAT(std::string(error.message()), HasSubstr("a JPEG in CMYK colours; accepted: grey and RGB"));
}

TEST(ImageFileTest, APictureThatIsTooLargeIsRefused) {
  std::string jpeg = EncodedJpeg({.width = 8, .height = 8}, Noise(8 * 8 * 3));
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (const size_t high : {frame + 5, frame + 7}) jpeg[high] = '\xfe';  // 65032 x 65032
  const absl::Status error = Error(jpeg);
  EXPECT_TRUE(absl::IsInvalidArgument(error)) << error;
  EXPECT_THAT(std::string(error.message()), HasSubstr("a picture of 65032 x 65032 pixels; accepted: up to 268435456"));
}

TEST(ImageFileTest, WhatIsNoPictureIsRefused) {
  EXPECT_THAT(std::string(Error("").message()), HasSubstr("d/file: the file is empty; accepted: PNG, JPEG"));
  EXPECT_THAT(std::string(Error("GIF89a").message()), HasSubstr("d/file: the content isn't a picture"));
  EXPECT_TRUE(absl::IsInvalidArgument(Error("P2 1 1 255 0")));
}

TEST(ImageFileTest, NoMemoryIsTakenForASizeThatIsNotAccepted) {
  const std::string files[] = {EncodedPng(kColours, Noise(12)), EncodedJpeg({.width = 2, .height = 2}, Noise(12)),
                               "P6 2 2 255\n123456789abc"};
  for (const std::string& file : files) {
    DecodedImage image;
    const auto refuse = [](const ImageSize& size) {
      EXPECT_EQ(size, (ImageSize{.height = 2, .width = 2}));
      return absl::OutOfRangeError("not this one");
    };
    EXPECT_TRUE(absl::IsOutOfRange(DecodeImage(file, "d/file", refuse, image)));
    EXPECT_THAT(image.pixels, IsEmpty());
  }
}

TEST(ImageFileTest, PlanesAreGreyOrColoursWithoutAlpha) {
  const auto planes = [](size_t from, std::vector<uint8_t> pixels, size_t channels) {
    const DecodedImage image = {.size = {.height = 1, .width = 2}, .channels = from, .pixels = std::move(pixels)};
    std::vector<uint8_t> into(2 * channels);
    FillPlanes(image, channels, into);
    return into;
  };
  EXPECT_THAT(planes(1, {3, 4}, 1), ElementsAre(3, 4));
  EXPECT_THAT(planes(1, {3, 4}, 3), ElementsAre(3, 4, 3, 4, 3, 4));
  EXPECT_THAT(planes(2, {3, 0, 4, 9}, 1), ElementsAre(3, 4));
  EXPECT_THAT(planes(3, {1, 2, 3, 4, 5, 6}, 3), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(planes(4, {1, 2, 3, 0, 4, 5, 6, 0}, 3), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(planes(3, {255, 0, 0, 0, 255, 0}, 1), ElementsAre(76, 150));
  EXPECT_THAT(planes(4, {0, 0, 255, 1, 255, 255, 255, 1}, 1), ElementsAre(29, 255));
}

}  // namespace
}  // namespace muster::image_file_test
