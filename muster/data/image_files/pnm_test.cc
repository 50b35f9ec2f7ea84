#include "muster/data/image_files/pnm.h"

#include <gmock/gmock.h>

#include <string>

namespace muster::pnm_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

absl::Status Accept(const ImageSize&) { return absl::OkStatus(); }

DecodedImage Decoded(const std::string& content) {
  DecodedImage image;
  const absl::Status status = DecodePnm(content, "file.ppm", Accept, image);
  EXPECT_TRUE(status.ok()) << status;
  return image;
}

void ExpectError(const std::string& content, absl::StatusCode code, const std::string& words) {
  DecodedImage image;
  const absl::Status status = DecodePnm(content, "file.ppm", Accept, image);
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("file.ppm: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

TEST(PnmTest, ReadsGreyAndColours) {
  const DecodedImage grey = Decoded(std::string("P5\n3 2\n255\n\0\1\2\3\4\xff", 17));
  EXPECT_EQ(grey.size, (ImageSize{.height = 2, .width = 3}));
  EXPECT_EQ(grey.channels, 1);
  EXPECT_THAT(grey.pixels, ElementsAre(0, 1, 2, 3, 4, 255));
  const DecodedImage colours = Decoded("P6 1 2 255\nabcdef");
  EXPECT_EQ(colours.size, (ImageSize{.height = 2, .width = 1}));
  EXPECT_EQ(colours.channels, 3);
  EXPECT_THAT(colours.pixels, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
}

TEST(PnmTest, CommentsMayStandBetweenTheNumbers) {
  EXPECT_THAT(Decoded("P5#made by hand\n# 7 7\n1\t# width\n2 #height\n255\nab").pixels, ElementsAre('a', 'b'));
  // The first pixel follows the one blank, whatever it is.
  EXPECT_THAT(Decoded("P5 1 2 255\n#\n").pixels, ElementsAre('#', '\n'));
}

TEST(PnmTest, ValuesAreBroughtTo255) {
  EXPECT_THAT(Decoded(std::string("P5 3 1 100\n\0\x32\x64", 14)).pixels, ElementsAre(0, 128, 255));
  EXPECT_THAT(Decoded(std::string("P5 3 1 1\n\0\1\1", 12)).pixels, ElementsAre(0, 255, 255));
  EXPECT_THAT(Decoded(std::string("P5 3 1 65535\n\0\0\x80\0\xff\xff", 19)).pixels, ElementsAre(0, 128, 255));
  ExpectError("P5 1 1 100\ne", absl::StatusCode::kInvalidArgument, "value 0 is 101, above the 100");
}

TEST(PnmTest, AHeaderThatIsWrongIsRefused) {
  const auto refuse = [](const std::string& content, const std::string& words) {
    ExpectError(content, absl::StatusCode::kInvalidArgument, words);
  };
  refuse("", "doesn't begin with P5 or P6");
  refuse("P3 1 1 255 1 2 3", "doesn't begin with P5 or P6");
  refuse("P5", "its width isn't there");
  refuse("P52 1 255\nab", "its width isn't there");
  refuse("P5 x 1 255\na", "its width isn't a number");
  refuse("P5 -1 1 255\na", "its width isn't a number");
  refuse("P5 0 1 255\n", "its width is 0");
  refuse("P5 1\n", "its height isn't there");
  refuse("P5 1 # never ends", "its height isn't there");
  refuse("P5 1 0 255\n", "its height is 0");
  refuse("P5 1 1 0\na", "its largest value is 0");
  refuse("P5 1 1 65536\naa", "its largest value is larger than 65535");
  refuse("P5 1 1 255", "its largest value isn't followed by a blank");
  refuse("P5 1 1 255a", "its largest value isn't followed by a blank");
  refuse("P5 99999999999999999999999 1 255\na", "its width is larger than 1000000000");
}

TEST(PnmTest, AsManyBytesAsPixelsFollow) {
  ExpectError("P5 2 2 255\nabc", absl::StatusCode::kDataLoss, "cut short: 3 bytes where 2 x 2 x 1 values are 4");
  ExpectError("P6 1 1 255\nabcd", absl::StatusCode::kDataLoss, "bytes follow: 4 bytes where 1 x 1 x 3 values are 3");
  ExpectError("P5 1 1 256\na", absl::StatusCode::kDataLoss, "cut short");
  // Doesn't allocate that much memory.
  ExpectError("P6 1000000000 1000000000 65535\na", absl::StatusCode::kDataLoss, "cut short");
}

}  // namespace
}  // namespace muster::pnm_test
