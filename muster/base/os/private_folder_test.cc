#include "muster/base/os/private_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "muster/base/testing/scratch_folder.h"

namespace muster::private_folder_test {
namespace {

using ::testing::StartsWith;

TEST(PrivateFolderTest, IsMadeForThisUserAlone) {
  const ScratchFolder scratch;
  const PrivateFolder shared = PrivateFolder::OpenShared(scratch.path()).value();
  EXPECT_TRUE(absl::IsNotFound(shared.OpenIn("a", /*make=*/false).status()));
  const PrivateFolder made = shared.OpenIn("a", /*make=*/true).value();
  EXPECT_EQ(made.path(), scratch / "a");
  struct stat info {};
  ASSERT_EQ(fstat(made.fd(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  EXPECT_TRUE(shared.OpenIn("a", /*make=*/true).ok());
  EXPECT_TRUE(PrivateFolder::Open(scratch / "a").ok());
}

TEST(PrivateFolderTest, NothingElseIsOpened) {
  const ScratchFolder scratch;
  const PrivateFolder shared = PrivateFolder::OpenShared(scratch.path()).value();
  ASSERT_EQ(mkdir((scratch / "open").c_str(), 0700), 0);
  ASSERT_EQ(chmod((scratch / "open").c_str(), 0750), 0);
  ASSERT_EQ(mkdir((scratch / "own").c_str(), 0700), 0);
  ASSERT_EQ(symlink("own", (scratch / "link").c_str()), 0);
  scratch.Write("file", "");
  for (const std::string name : {"open", "link", "file"}) {
    const absl::Status status = shared.OpenIn(name, /*make=*/true).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << name;
    EXPECT_THAT(std::string(status.message()), StartsWith(scratch / name));
    EXPECT_TRUE(absl::IsFailedPrecondition(PrivateFolder::Open(scratch / name).status())) << name;
  }
  EXPECT_TRUE(absl::IsNotFound(PrivateFolder::Open(scratch / "none").status()));
}

}  // namespace
}  // namespace muster::private_folder_test
