#include "muster/base/os/memory_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

namespace muster::memory_file_test {
namespace {

TEST(MemoryFile, GrowsAndNeverShrinks) {
  const int fd = CreateMemoryFile("test");
  ASSERT_GE(fd, 0);
  EXPECT_EQ(ftruncate(fd, 8192), 0);
  EXPECT_EQ(ftruncate(fd, 4096), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(fd, 16384), 0);
  close(fd);
}

}  // namespace
}  // namespace muster::memory_file_test
