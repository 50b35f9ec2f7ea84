#include "muster/launch/registry/files/exclusive_file.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "muster/base/testing/scratch_folder.h"

namespace muster::exclusive_file_test {
namespace {

using ::testing::HasSubstr;

class ExclusiveFileTest : public testing::Test {
 protected:
  void MakeOld() { std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now() - kOld); }
  static size_t FilesIn(const std::string& folder) {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }

  static constexpr std::chrono::minutes kOld{1};
  const ScratchFolder folder_;
  const std::string path_ = folder_ / "lock";
};

TEST_F(ExclusiveFileTest, IsHeldByOneAtATime) {
  {
    auto first = ExclusiveFile::Take(path_, absl::ZeroDuration());
    ASSERT_TRUE(first.ok()) << first.status();
    const ExclusiveFile moved = *std::move(first);
    const auto second = ExclusiveFile::Take(path_, absl::ZeroDuration());
    EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(second.status().message(), HasSubstr("try again"));
  }
  EXPECT_TRUE(ExclusiveFile::Take(path_, absl::ZeroDuration()).ok());
  EXPECT_EQ(FilesIn(folder_.path()), 0U);
}

TEST_F(ExclusiveFileTest, WhatADeadHolderHasLeftIsTakenAway) {
  std::ofstream(path_).close();
  MakeOld();
  {
    const auto taken = ExclusiveFile::Take(path_, absl::Seconds(30));
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(FilesIn(folder_.path()), 1U);
  }
  EXPECT_EQ(FilesIn(folder_.path()), 0U);
}

TEST_F(ExclusiveFileTest, ASlowHolderLeavesTheNextOnesAlone) {
  auto slow = ExclusiveFile::Take(path_, absl::ZeroDuration());
  ASSERT_TRUE(slow.ok());
  MakeOld();
  const auto next = ExclusiveFile::Take(path_, absl::Seconds(30));
  ASSERT_TRUE(next.ok()) << next.status();
  { const ExclusiveFile ended = *std::move(slow); }
  EXPECT_EQ(ExclusiveFile::Take(path_, absl::ZeroDuration()).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ExclusiveFileTest, WithoutItsFolderThereIsNone) {
  EXPECT_EQ(ExclusiveFile::Take(folder_ / "none/lock", absl::ZeroDuration()).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster::exclusive_file_test
