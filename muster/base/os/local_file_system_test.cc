#include "muster/base/os/local_file_system.h"

#include "gtest/gtest.h"

namespace muster::local_file_system_test {
namespace {

TEST(LocalFileSystemTest, KnowsWhatIsLocalAndTakesAllElseForShared) {
  EXPECT_TRUE(IsOnLocalFileSystem("/dev/shm")) << "tmpfs";
  EXPECT_FALSE(IsOnLocalFileSystem("/proc"));
  EXPECT_FALSE(IsOnLocalFileSystem("/not/there"));
}

}  // namespace
}  // namespace muster::local_file_system_test
