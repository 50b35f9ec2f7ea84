#include "muster/launch/agent/rendezvous.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "muster/base/testing/scratch_folder.h"

namespace muster::rendezvous_test {
namespace {

using ::testing::HasSubstr;

class RendezvousTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) const {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  }

  const ScratchFolder scratch_;
  const std::string path_ = scratch_.path() + "/rendezvous";
};

TEST_F(RendezvousTest, IsReadAsItWasWritten) {
  const Rendezvous written = NewRendezvous({"10.0.0.1:20000", "[fd00::1]:20000"});
  EXPECT_NE(written.secret, NewRendezvous({}).secret);
  ASSERT_EQ(WriteRendezvous(path_, NewRendezvous({"10.0.0.9:1"})), absl::OkStatus());
  ASSERT_EQ(WriteRendezvous(path_, written), absl::OkStatus()) << "it is replaced";
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const auto read = ReadRendezvous(path_);
  ASSERT_EQ(read.status(), absl::OkStatus());
  EXPECT_EQ(read->addresses, written.addresses);
  EXPECT_EQ(read->secret, written.secret);
}

TEST_F(RendezvousTest, AFileThatOthersCouldHaveReadIsNotBelieved) {
  ASSERT_EQ(WriteRendezvous(path_, NewRendezvous({"10.0.0.1:20000"})), absl::OkStatus());
  for (const mode_t mode : {0640, 0604, 0620}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    EXPECT_TRUE(absl::IsPermissionDenied(ReadRendezvous(path_).status()));
  }
  EXPECT_TRUE(absl::IsPermissionDenied(ReadRendezvous(scratch_.path()).status())) << "a folder";
}

TEST_F(RendezvousTest, WhatIsMissingIsNamed) {
  const auto why = [this] { return std::string(ReadRendezvous(path_).status().message()); };
  EXPECT_THAT(why(), HasSubstr(path_));
  Write("");
  EXPECT_THAT(why(), HasSubstr("its first line isn't 'muster rendezvous 1'"));
  Write("muster rendezvous 1\naddress 10.0.0.1:1\nsecret 00ff\n");
  EXPECT_THAT(why(), HasSubstr("no secret of 64 digits"));
  Write("muster rendezvous 1\naddress 10.0.0.1:1\nsecret " + std::string(64, 'x') + "\n");
  EXPECT_THAT(why(), HasSubstr("no secret of 64 digits"));
  Write("muster rendezvous 1\nsecret " + std::string(64, 'a') + "\n");
  EXPECT_THAT(why(), HasSubstr("it has no address"));
}

TEST(GreetingTest, NamesTheHost) {
  const std::string greeting = GreetingOf("node-7", "key");
  for (size_t bytes = 0; bytes < greeting.size(); ++bytes)
    EXPECT_EQ(ParseGreeting(greeting.substr(0, bytes)).value().bytes, 0U);
  const auto whole = ParseGreeting(greeting + "MUSTER");
  ASSERT_EQ(whole.status(), absl::OkStatus());
  EXPECT_EQ(whole->host, "node-7");
  EXPECT_EQ(whole->bytes, greeting.size());
  EXPECT_TRUE(IsProven(*whole, "key"));
  EXPECT_FALSE(IsProven(*whole, "other key"));
  EXPECT_FALSE(IsProven(ParseGreeting(GreetingOf("node-8", "other key")).value(), "key"));
}

TEST(GreetingTest, AnythingElseIsRefused) {
  EXPECT_FALSE(ParseGreeting("GET / HTTP/1.1\r\n").ok());
  EXPECT_FALSE(ParseGreeting("m\n").ok());
  EXPECT_FALSE(ParseGreeting("muster agent of node-7\n").ok());
  EXPECT_FALSE(ParseGreeting("muster agent of node-7 abc\n").ok());
  EXPECT_FALSE(ParseGreeting(GreetingOf(std::string(300, 'x'), "key")).ok());
  EXPECT_FALSE(ParseGreeting("muster agent of " + std::string(400, 'x')).ok());
}

TEST(GreetingTest, EachHostHasItsOwnKey) {
  EXPECT_NE(KeyOfHost("secret", "a"), KeyOfHost("secret", "b"));
  EXPECT_NE(KeyOfHost("secret", "a"), KeyOfHost("other", "a"));
}

}  // namespace
}  // namespace muster::rendezvous_test
