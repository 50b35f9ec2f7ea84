// A separate file system of a few kilobytes for a test: root ignores permissions, but not the end of the room, nor the
// options of a mount.
#pragma once

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "muster/base/testing/scratch_folder.h"

namespace muster {

class SmallDisk {
 public:
  // `options`: of a tmpfs, "size=64k".
  explicit SmallDisk(const std::string& options) {
    mounted_ = mount("none", directory_.path().c_str(), "tmpfs", 0, options.c_str()) == 0;
    error_ = errno;
  }
  ~SmallDisk() {
    if (!mounted_) return;
    EXPECT_EQ(umount(directory_.path().c_str()), 0) << strerror(errno);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // False: it may not be mounted here, and `error` says why.
  bool mounted() const { return mounted_; }
  std::string error() const { return std::string("cannot mount a tmpfs here: ") + strerror(error_); }
  const std::string& path() const { return directory_.path(); }
  bool MakeReadOnly() const { return mount("none", path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0; }

 private:
  ScratchFolder directory_;
  bool mounted_;
  int error_;
};

}  // namespace muster
