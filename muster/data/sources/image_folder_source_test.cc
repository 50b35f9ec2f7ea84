#include "muster/data/sources/image_folder_source.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/forwarding_file_system.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/base/log.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/dataset/dataset.h"
#include "muster/data/testing/drawn_examples.h"
#include "muster/data/testing/encoded_images.h"

namespace muster::image_folder_source_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;

// Returns a grey picture of 1 x 2 pixels: two letters.
std::string Grey(const std::string& pixels) { return absl::StrCat("P5 2 1 255\n", pixels); }

// Remembers which files are read.
class WatchedFiles final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    read.insert(path);
    return ForwardingFileSystem::ReadFile(path);
  }
  std::set<std::string> read;
};

class ImageFolderSourceTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) { EXPECT_TRUE(files_.WriteFile(path, content).ok()); }
  Dataset Data(ImageFolderOptions options = {.channels = 1}) {
    return Dataset::FromImageFolders("d", std::move(options), files_);
  }
  std::string ErrorOf(const Dataset& data, absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    const absl::Status error = DrawingError(data);
    EXPECT_EQ(error.code(), code) << error;
    return std::string(error.message());
  }
  // Returns "ab=0 cd=1": every picture's pixels and label.
  std::string Drawn(const Dataset& data) {
    const auto drawn = DrawnExamples(data).value();
    std::string all;
    for (const Example& example : drawn) {
      const std::vector<uint8_t> pixels = ValuesOf<uint8_t>(example.features.at(0).value);
      absl::StrAppend(&all, all.empty() ? "" : " ", std::string(pixels.begin(), pixels.end()), "=",
                      example.labels.As<int64_t>()[0]);
    }
    return all;
  }

  MemoryFileSystem files_;
};

TEST_F(ImageFolderSourceTest, ClassesAreTheFoldersByNameAndFilesAreSorted) {
  Write("d/dog/2.pgm", Grey("ef"));
  Write("d/cat/b.pgm", Grey("cd"));
  Write("d/cat/a.pgm", Grey("ab"));
  EXPECT_EQ(Drawn(Data()), "ab=0 cd=0 ef=1");
  EXPECT_EQ(Data().size(), 3);
  EXPECT_EQ(Drawn(Data({.channels = 1, .classes = {"dog", "cat"}})), "ef=0 ab=1 cd=1");
  EXPECT_EQ(Drawn(Data({.channels = 1, .classes = {"cat"}})), "ab=0 cd=0");
  EXPECT_THAT(Data().Describe(), HasSubstr("image_folders(d, channels=1)"));
  EXPECT_THAT(Dataset::FromImageFolders("a/d/", {.classes = {"cat"}}, files_).Describe(),
              HasSubstr("image_folders(d, cat, channels=3)"));
}

TEST_F(ImageFolderSourceTest, AnExampleIsPlanesAndALabel) {
  Write("d/a/1.png", EncodedPng({.width = 2, .height = 1, .color = PNG_COLOR_TYPE_RGB}, {1, 2, 3, 4, 5, 6}));
  Write("d/b/1.pgm", Grey("xy"));
  const auto drawn = DrawnExamples(Data({})).value();
  ASSERT_EQ(drawn.size(), 2);
  for (const Example& example : drawn) {
    ASSERT_EQ(example.features.size(), 1);
    EXPECT_EQ(example.features[0].name, "image");
    EXPECT_THAT(example.features[0].value.shape(), ElementsAre(3, 1, 2));
    EXPECT_TRUE(example.has_labels);
    EXPECT_TRUE(example.labels.shape().empty());
  }
  EXPECT_THAT(ValuesOf<uint8_t>(drawn[0].features[0].value), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(ValuesOf<uint8_t>(drawn[1].features[0].value), ElementsAre('x', 'y', 'x', 'y', 'x', 'y'));
}

TEST_F(ImageFolderSourceTest, JpegAndPngStandBesideEachOther) {
  Write("d/a/1.JPG",
        EncodedJpeg({.width = 8, .height = 8, .colors = JCS_GRAYSCALE, .channels = 1}, std::vector<uint8_t>(64, 7)));
  Write("d/a/2.png", EncodedPng({.width = 8, .height = 8}, std::vector<uint8_t>(64, 9)));
  const auto drawn = DrawnExamples(Data()).value();
  ASSERT_EQ(drawn.size(), 2);
  EXPECT_NEAR(ValuesOf<uint8_t>(drawn[0].features[0].value)[0], 7, 1);
  EXPECT_EQ(ValuesOf<uint8_t>(drawn[1].features[0].value)[0], 9);
}

TEST_F(ImageFolderSourceTest, APictureIsReadWhenItIsDrawn) {
  for (int i = 0; i < 5; ++i) Write(absl::StrCat("d/a/", i, ".pgm"), Grey("ab"));
  WatchedFiles files(files_);
  const Dataset data = Dataset::FromImageFolders("d", {.channels = 1}, files);
  EXPECT_TRUE(files.read.empty());
  EXPECT_TRUE(DrawingError(data.Skip(3).Take(1)).ok());
  EXPECT_THAT(files.read, ElementsAre("d/a/0.pgm", "d/a/3.pgm"));  // the first says the size of all
}

TEST_F(ImageFolderSourceTest, RowsAreReadByNumber) {
  for (int i = 0; i < 8; ++i) Write(absl::StrCat("d/a/", i, ".pgm"), Grey(std::string(2, static_cast<char>('0' + i))));
  const Dataset shuffled = Data().Shuffle({.seed = 5});
  const auto drawn = DrawnExamples(shuffled.Batch(8)).value();
  ASSERT_EQ(drawn.size(), 1);
  const Array& images = drawn.front().features[0].value;
  EXPECT_THAT(images.shape(), ElementsAre(8, 1, 1, 2));
  const std::vector<uint8_t> pixels = ValuesOf<uint8_t>(images);
  EXPECT_EQ(std::set<uint8_t>(pixels.begin(), pixels.end()).size(), 8);
}

TEST_F(ImageFolderSourceTest, WhatIsNoPictureIsLeftOutWithOneWarning) {
  Write("d/a/1.pgm", Grey("ab"));
  Write("d/a/notes.txt", "x");
  Write("d/a/more/2.pgm", Grey("cd"));
  Write("d/README", "x");
  Write("d/.hidden/3.pgm", Grey("ef"));
  Write("d/a/.DS_Store", "x");
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  EXPECT_EQ(Drawn(Data()), "ab=0");
  EXPECT_EQ(Drawn(Data()), "ab=0");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("d: left out, as they aren't pictures: 3, the first of them d/README"));
  EXPECT_EQ(log.find("left out"), log.rfind("left out"));
  EXPECT_THAT(log, Not(HasSubstr("DS_Store")));
}

TEST_F(ImageFolderSourceTest, APictureOfAnotherSizeIsNamedWithBothSizes) {
  Write("d/a/1.pgm", Grey("ab"));
  Write("d/b/1.pgm", "P5 1 2 255\nab");
  EXPECT_THAT(ErrorOf(Data()), HasSubstr("d/b/1.pgm: a picture of 2 x 1 (height x width) where d/a/1.pgm is of 1 x 2"));
  EXPECT_TRUE(DrawingError(Data().Take(1)).ok());
}

TEST_F(ImageFolderSourceTest, ADamagedPictureIsNamed) {
  Write("d/a/1.pgm", Grey("ab"));
  Write("d/a/2.pgm", Grey("a"));
  EXPECT_THAT(ErrorOf(Data(), absl::StatusCode::kDataLoss), HasSubstr("d/a/2.pgm: the file is cut short"));
  Write("d/a/1.pgm", "no picture");
  EXPECT_THAT(ErrorOf(Data()), HasSubstr("d/a/1.pgm: the content isn't a picture"));
}

TEST_F(ImageFolderSourceTest, FoldersThatAreMissingOrEmptyAreNamed) {
  EXPECT_THAT(ErrorOf(Data(), absl::StatusCode::kNotFound), HasSubstr("d"));
  Write("d/file.pgm", Grey("ab"));
  EXPECT_THAT(ErrorOf(Data()), HasSubstr("d: there are no folders in it; one for each class is needed"));
  Write("d/cats/1.pgm", Grey("ab"));
  Write("d/dogs/notes.txt", "x");
  EXPECT_THAT(ErrorOf(Data()), HasSubstr("d/dogs: the folder of class 1 holds no pictures"));
  EXPECT_FALSE(Data().size().has_value());
  EXPECT_THAT(ErrorOf(Data({.channels = 1, .classes = {"cats", "dgs"}}), absl::StatusCode::kNotFound),
              HasSubstr("d/dgs: there is no folder for class 1 (nearest: dogs)"));
}

TEST_F(ImageFolderSourceTest, WhatNoFolderCouldMakeRightIsAWrongConfiguration) {
  const auto message = [&](const Dataset& data) {
    const absl::Status error = DrawingError(data);
    EXPECT_TRUE(IsWrongConfiguration(error)) << error;
    return std::string(error.message());
  };
  EXPECT_THAT(message(Data({.channels = 4})), HasSubstr("4 channels; accepted: 1 (grey), 3 (RGB)"));
  EXPECT_THAT(message(Data({.classes = {"a", "a"}})), HasSubstr("class \"a\" is named twice"));
  EXPECT_THAT(message(Data({.classes = {""}})), HasSubstr("a class has no name"));
  EXPECT_THAT(message(Dataset::FromImageFolders("", {}, files_)), HasSubstr("no directory is named"));
}

// A disk's file system reports a file that isn't a folder with another error.
TEST_F(ImageFolderSourceTest, AFileBesideTheClassesIsNoClassOnADisk) {
  const ScratchFolder scratch;
  FileSystem& disk = PosixFileSystem();
  ASSERT_TRUE(disk.CreateDirectory(scratch / "a").ok());
  const std::string picture = Grey("ab");
  for (const char* file : {"a/1.pgm", "README"})
    ASSERT_TRUE(WriteFileAtomically(disk, scratch / file, AsBytes(picture.data(), picture.size())).ok());
  EXPECT_EQ(Drawn(Dataset::FromImageFolders(scratch.path(), {.channels = 1})), "ab=0");
  EXPECT_THAT(ErrorOf(Dataset::FromImageFolders(scratch.path(), {.channels = 1, .classes = {"README"}}),
                      absl::StatusCode::kNotFound),
              HasSubstr("/README: there is no folder for class 0"));
}

}  // namespace
}  // namespace muster::image_folder_source_test
