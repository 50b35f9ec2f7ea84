// For tests: as long as an object of this exists, files of this process can't grow beyond a size, as on a full disk. A
// write that would make one larger fails with EFBIG, which counts as "no room".
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

namespace muster {

class FullDisk {
 public:
  explicit FullDisk(rlim_t most_bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit small = {.rlim_cur = most_bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~FullDisk() {
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0);
    signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_ = {};
  void (*const handler_)(int) = signal(SIGXFSZ, SIG_IGN);
};

}  // namespace muster
