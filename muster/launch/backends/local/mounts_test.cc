#include "muster/launch/backends/local/mounts.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::mounts_test {
namespace {

using ::testing::HasSubstr, ::testing::SizeIs;

class MountsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::string& folder : {data_, elsewhere_}) {
      ASSERT_TRUE(PosixFileSystem().CreateDirectory(folder).ok());
    }
    std::ofstream(file_) << "text";
  }

  const ScratchFolder folder_;
  const std::string data_ = folder_ / "data", elsewhere_ = folder_ / "elsewhere", file_ = folder_ / "file";
  const absl::Status may_;
  const absl::Status may_not_ = absl::PermissionDeniedError("not allowed");
  std::string note_;
};

TEST_F(MountsTest, WhatIsThereAnywayAndWritableNeedsNothing) {
  for (const absl::Status& permitted : {may_, may_not_}) {
    const auto mounts = MountsFor({{.host = data_, .path = data_, .writable = true}}, permitted, &note_).value();
    EXPECT_THAT(mounts, SizeIs(0));
  }
  EXPECT_EQ(note_, "");
}

TEST_F(MountsTest, ReadOnlyAndElsewhereAreMounted) {
  const auto mounts =
      MountsFor({{.host = data_, .path = data_}, {.host = data_, .path = elsewhere_, .writable = true}}, may_, &note_)
          .value();
  ASSERT_THAT(mounts, SizeIs(2));
  EXPECT_FALSE(mounts[0].writable);
  EXPECT_EQ(mounts[1].path, elsewhere_);
  EXPECT_EQ(note_, "");
}

TEST_F(MountsTest, WhereItIsNotPermittedReadOnlyIsANoteAndElsewhereAnError) {
  const auto same = MountsFor({{.host = data_, .path = data_}}, may_not_, &note_).value();
  EXPECT_THAT(same, SizeIs(0));
  EXPECT_EQ(note_,
            "volumes are not read-only for tasks, since this process may not mount (not allowed): don't write to them");
  const absl::Status elsewhere = MountsFor({{.host = data_, .path = elsewhere_}}, may_not_, &note_).status();
  EXPECT_EQ(elsewhere.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(elsewhere.message()), HasSubstr("'" + data_ + "' can't be shown to tasks at '" + elsewhere_));
  EXPECT_THAT(std::string(elsewhere.message()), HasSubstr("use the same path, or run as root"));
}

TEST_F(MountsTest, PathsThatAreNotThereAreNamed) {
  const auto message = [this](const ProcessMount& mount) {
    const absl::Status status = MountsFor({mount}, may_, &note_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    return std::string(status.message());
  };
  EXPECT_THAT(message({.host = folder_ / "none", .path = data_}),
              HasSubstr("'" + folder_ / "none', which tasks should see, isn't on this machine"));
  EXPECT_THAT(message({.host = data_, .path = folder_ / "none"}),
              HasSubstr("at '" + folder_ / "none', where there is no folder on this machine: make an empty one"));
  EXPECT_THAT(message({.host = data_, .path = file_}), HasSubstr("where there is no folder"));
  EXPECT_THAT(message({.host = file_, .path = data_}), HasSubstr("where there is no file"));
}

}  // namespace
}  // namespace muster::mounts_test
