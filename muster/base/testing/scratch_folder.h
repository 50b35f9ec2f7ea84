// For tests: a temporary folder that is removed with this object, and short ways to use files in it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "muster/base/files/file_system.h"

namespace muster {

class ScratchFolder {
 public:
  ScratchFolder() : path_(testing::TempDir() + "muster_test_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~ScratchFolder() { EXPECT_TRUE(PosixFileSystem().RemoveTree(path_).ok()); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  // Makes the folders above it, too.
  void Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = *this / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream stream(file, std::ios::binary);
    stream << text;
    EXPECT_TRUE(stream.good()) << file;
  }
  std::string Read(const std::string& name) const {
    std::ifstream stream(*this / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  bool Has(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(*this / name));
  }
  // Sets its modification time to that long ago.
  void MakeOld(const std::string& name, absl::Duration age) const {
    const timespec then = absl::ToTimespec(absl::Now() - age);
    const timespec times[2] = {then, then};
    EXPECT_EQ(utimensat(AT_FDCWD, (*this / name).c_str(), times, AT_SYMLINK_NOFOLLOW), 0) << name;
  }

 private:
  std::string path_;
};

}  // namespace muster
