#include "muster/launch/system/find_program.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <string>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::find_program_test {
namespace {

using ::testing::HasSubstr;

TEST(FindProgram, LooksWhereAShellLooks) {
  const ScratchFolder scratch;
  const std::string& directory = scratch.path();
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(directory + "/empty").ok());
  scratch.Write("tool", "");
  const std::string path = directory + "/empty:" + directory;

  EXPECT_EQ(FindProgram("tool", path).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(FindProgram(directory + "/tool", "").status().code(), absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(chmod((directory + "/tool").c_str(), 0755), 0);
  EXPECT_EQ(*FindProgram("tool", path), directory + "/tool");
  EXPECT_EQ(*FindProgram(directory + "/tool", ""), directory + "/tool");
  EXPECT_EQ(FindProgram("tool", directory + "/empty").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FindProgram("empty", path).status().code(), absl::StatusCode::kNotFound);  // a directory
  EXPECT_THAT(std::string(FindProgram("no-such", path).status().message()), HasSubstr("program 'no-such' not found"));
}

}  // namespace
}  // namespace muster::find_program_test
