#include "muster/launch/registry/registry_place.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::registry_place_test {
namespace {

bool IsNever(const std::string& /*folder*/) { return false; }
bool IsAlways(const std::string& /*folder*/) { return true; }

class RegistryPlaceTest : public ::testing::Test {
 protected:
  RegistryPlaceTest() { std::filesystem::create_directory(host_.of_all); }

  const ScratchFolder scratch_;
  const Home home_{scratch_.path() + "/home"};
  HostFolders host_{.is_local = IsNever, .of_all = scratch_.path() + "/tmp"};
  const std::string own_ = absl::StrCat(host_.of_all, "/muster-", geteuid());
};

TEST_F(RegistryPlaceTest, OnADiskOfThisHostTheIndexIsInTheHome) {
  host_.is_local = IsAlways;
  std::filesystem::create_directory(home_.path());
  const auto place = FindRegistryPlace(home_, "", host_);
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(place->database, home_.database());
  EXPECT_FALSE(place->shared);
  EXPECT_FALSE(std::filesystem::exists(own_));
}

TEST_F(RegistryPlaceTest, OnANetworkFileSystemItIsInAFolderOfThisHostAndUser) {
  const auto place = FindRegistryPlace(home_, "", host_);
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_TRUE(absl::StartsWith(place->database, own_ + "/")) << place->database;
  EXPECT_TRUE(place->shared);
  struct stat info {};
  ASSERT_EQ(stat(own_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700);
  EXPECT_EQ(FindRegistryPlace(home_, "", host_)->database, place->database);
  EXPECT_NE(FindRegistryPlace(Home(scratch_.path() + "/other"), "", host_)->database, place->database);
}

TEST_F(RegistryPlaceTest, TheFileSystemIsThatOfTheHome) {
  host_.is_local = [](const std::string& folder) { return !absl::StrContains(folder, "/home"); };
  EXPECT_TRUE(FindRegistryPlace(home_, "", host_)->shared);
  host_.is_local = HostFolders().is_local;
  EXPECT_TRUE(FindRegistryPlace(Home("/proc/self"), "", host_)->shared) << "no file system that is known to be local";
}

TEST_F(RegistryPlaceTest, AFolderThatOthersMayOpenIsRefused) {
  std::filesystem::create_directory(own_);
  ASSERT_EQ(chmod(own_.c_str(), 0755), 0);
  const absl::Status refused = FindRegistryPlace(home_, "", host_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), own_)) << refused;
}

}  // namespace
}  // namespace muster::registry_place_test
