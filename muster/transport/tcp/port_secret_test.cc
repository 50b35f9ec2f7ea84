#include "muster/transport/tcp/port_secret.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "muster/base/testing/scratch_folder.h"

namespace muster::port_secret_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PortSecretTest : public ::testing::Test {
 protected:
  static Endpoint At(const char* host, const char* port) {
    return Resolve(TcpAddress{host, port}, /*numeric_only=*/true).value().front();
  }
  std::string Find() { return FindPortSecret(endpoint_, places_).value_or(JobToken{"none"}).secret; }
  std::string OnlyFileIn(const std::string& folder) const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) found = entry.path();
    return found;
  }
  static std::string Folder() { return "muster-" + std::to_string(geteuid()); }

  const ScratchFolder root_;
  const PortSecretPlaces places_{root_ / "own", root_.path()};
  const std::string ports_ = root_ / (Folder() + "/ports");  // in the shared place
  const Endpoint endpoint_ = At("127.0.0.1", "2222");
};

TEST_F(PortSecretTest, IsFoundAsLongAsItsListenerLives) {
  EXPECT_TRUE(absl::IsNotFound(FindPortSecret(endpoint_, places_).status()));
  auto secret = PortSecret::Publish(endpoint_, places_).value();
  EXPECT_EQ(secret->token().secret.size(), 64u);
  EXPECT_EQ(Find(), secret->token().secret);
  for (const Endpoint& other : {At("127.0.0.1", "2223"), At("127.0.0.2", "2222"), At("::1", "2222")})
    EXPECT_TRUE(absl::IsNotFound(FindPortSecret(other, places_).status())) << other.ToString();
  struct stat info {};
  ASSERT_EQ(stat(OnlyFileIn(ports_).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(ports_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  secret.reset();
  EXPECT_EQ(Find(), "none");
}

TEST_F(PortSecretTest, BeyondLoopbackNothingIsLookedFor) {
  EXPECT_TRUE(absl::IsNotFound(FindPortSecret(At("192.0.2.1", "2222"), places_).status()));
}

TEST_F(PortSecretTest, TheUsersOwnPlaceComesFirst) {
  ASSERT_EQ(mkdir(places_.own.c_str(), 0700), 0);
  const auto secret = PortSecret::Publish(endpoint_, places_).value();
  EXPECT_FALSE(std::filesystem::exists(ports_));
  EXPECT_EQ(Find(), secret->token().secret);
  // Somebody takes the name in the shared place: no matter.
  ASSERT_EQ(symlink("/nowhere", (root_ / Folder()).c_str()), 0);
  EXPECT_EQ(Find(), secret->token().secret);
}

TEST_F(PortSecretTest, AnOwnPlaceThatOthersCanOpenIsNotUsed) {
  ASSERT_EQ(mkdir(places_.own.c_str(), 0700), 0);
  ASSERT_EQ(chmod(places_.own.c_str(), 0755), 0);
  const auto secret = PortSecret::Publish(endpoint_, places_).value();
  EXPECT_TRUE(std::filesystem::exists(ports_));
}

TEST_F(PortSecretTest, OneThatAKilledProcessLeftIsReplacedAndNotTakenAwayLater) {
  auto left = PortSecret::Publish(endpoint_, places_).value();
  const auto secret = PortSecret::Publish(endpoint_, places_).value();
  EXPECT_NE(secret->token().secret, left->token().secret);
  EXPECT_EQ(Find(), secret->token().secret);
  left.reset();
  EXPECT_EQ(Find(), secret->token().secret);
}

TEST_F(PortSecretTest, WhatKilledProcessesLeftForOtherPortsIsRemoved) {
  const auto living = PortSecret::Publish(endpoint_, places_).value();
  const auto leave = [&](const std::string& name, mode_t mode) {
    root_.Write(Folder() + "/ports/" + name, living->token().secret);
    ASSERT_EQ(chmod((ports_ + "/" + name).c_str(), mode), 0);
  };
  leave("port-1-127.0.0.1:9", 0600);
  leave("port-1-127.0.0.1:10", 0644);  // not written by a listener
  leave("net-1-127.0.0.1:9", 0600);    // of an older muster, which may live
  leave(".unfinished", 0600);
  const auto secret = PortSecret::Publish(At("127.0.0.1", "2223"), places_).value();
  EXPECT_FALSE(std::filesystem::exists(ports_ + "/port-1-127.0.0.1:9"));
  EXPECT_TRUE(std::filesystem::exists(ports_ + "/port-1-127.0.0.1:10"));
  EXPECT_TRUE(std::filesystem::exists(ports_ + "/net-1-127.0.0.1:9"));
  EXPECT_TRUE(std::filesystem::exists(ports_ + "/.unfinished"));
  EXPECT_EQ(Find(), living->token().secret);
  std::filesystem::remove_all(ports_);
  EXPECT_TRUE(living->Keep().ok());
  (void)PortSecret::Publish(At("127.0.0.1", "2224"), places_).value();
  EXPECT_EQ(Find(), living->token().secret) << "a file written again is locked, too";
}

TEST_F(PortSecretTest, IsWrittenAgainWhenItWasSweptAway) {
  ASSERT_EQ(mkdir(places_.own.c_str(), 0700), 0);
  const auto secret = PortSecret::Publish(endpoint_, places_).value();
  EXPECT_TRUE(secret->Keep().ok());
  std::filesystem::remove_all(places_.own);  // the user's last session has ended
  EXPECT_EQ(Find(), "none");
  EXPECT_TRUE(secret->Keep().ok());
  EXPECT_EQ(Find(), secret->token().secret);
  std::filesystem::remove_all(root_ / Folder());
  EXPECT_TRUE(secret->Keep().ok());
  EXPECT_EQ(Find(), secret->token().secret);
}

TEST_F(PortSecretTest, AFolderThatIsNotThisUsersOwnIsRefused) {
  const std::string folder = root_ / Folder();
  const auto expect_refused = [&](const char* what) {
    for (const absl::Status& status :
         {PortSecret::Publish(endpoint_, places_).status(), FindPortSecret(endpoint_, places_).status()}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << what << ": " << status;
      EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(folder), HasSubstr("MUSTER_JOB_TOKEN"))) << what;
    }
    std::filesystem::remove_all(folder);
  };
  ASSERT_EQ(mkdir((root_ / "elsewhere").c_str(), 0700), 0);
  ASSERT_EQ(symlink((root_ / "elsewhere").c_str(), folder.c_str()), 0);
  expect_refused("a link");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0711), 0);
  expect_refused("open to others");
  root_.Write(Folder(), "a file");
  expect_refused("a file");
  if (geteuid() != 0) return;
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
  expect_refused("another user's");
}

TEST_F(PortSecretTest, AFileThatOthersCouldHaveWrittenIsNotBelieved) {
  const auto secret = PortSecret::Publish(endpoint_, places_).value();
  const std::string file = OnlyFileIn(ports_);
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(FindPortSecret(endpoint_, places_).status()));
  root_.Write("theirs", std::string(64, '0'));
  ASSERT_EQ(chmod((root_ / "theirs").c_str(), 0600), 0);
  std::filesystem::remove(file);
  std::filesystem::create_symlink(root_ / "theirs", file);
  EXPECT_TRUE(absl::IsFailedPrecondition(FindPortSecret(endpoint_, places_).status()));
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(FindPortSecret(endpoint_, places_).status()));
}

}  // namespace
}  // namespace muster::port_secret_test
