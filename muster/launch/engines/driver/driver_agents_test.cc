// The starter with a driver that the test plays at the other end of the socket.
#include "muster/launch/engines/driver/driver_agents.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/engines/driver/driver_engine.h"

namespace muster::driver_agents_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

// Turns a hang into a failed test.
constexpr absl::Duration kHang = absl::Minutes(1);

class DriverAgentsTest : public ::testing::Test, public AgentStarterEvents {
 protected:
  DriverAgentsTest() {
    listening_ = Socket(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, path_.size());
    EXPECT_EQ(bind(listening_.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listening_.fd(), 1), 0);
    MakeAgents({});
  }

  void MakeAgents(const EndPatience& patience) {
    agents_ = std::make_unique<DriverAgents>(
        DriverAgentsOptions{.socket = path_, .job = "job-1", .grace = absl::Seconds(20), .patience = patience}, loop_);
  }

  void OnSaid(const std::string& host, const std::string& line) override { Note("said", host, line); }
  void OnSaidOfAll(const std::vector<std::string>& /*hosts*/, const std::string& line) override {
    Note("all", "", line);
  }
  void OnWaits(const std::vector<std::string>& hosts, const std::string& line) override {
    Note("waits", hosts.at(0), line);
  }
  void OnEnded(const std::string& host, const std::string& how) override { Note("ended", host, how); }
  void Note(const std::string& what, const std::string& host, const std::string& line) {
    told_.push_back(absl::StrCat(what, " ", host, ": ", line));
  }

  void Begin() {
    ASSERT_EQ(agents_->Begin({.file = "", .rendezvous = {.addresses = {"10.0.0.1:5"}, .secret = "secret"}}, *this),
              absl::OkStatus());
    driver_ = Socket(accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_THAT(NextLine(), HasSubstr("{\"rendezvous\":\"muster rendezvous 1\\naddress 10.0.0.1:5\\n"));
  }
  std::string NextLine() {
    while (!absl::StrContains(heard_, '\n')) {
      char piece[4096];
      const ssize_t got = read(driver_.fd(), piece, sizeof piece);
      if (got <= 0) return "";
      heard_.append(piece, static_cast<size_t>(got));
    }
    std::string line = heard_.substr(0, heard_.find('\n'));
    heard_.erase(0, line.size() + 1);
    return line;
  }
  void Say(const std::string& line) const {
    const std::string with_end = line + "\n";
    EXPECT_EQ(write(driver_.fd(), with_end.data(), with_end.size()), static_cast<ssize_t>(with_end.size()));
  }
  void AwaitTold(size_t count) {
    const absl::Time give_up = RealClock().Now() + kHang;
    while (told_.size() < count && RealClock().Now() < give_up) loop_.RunOnce(RealClock().Now() + absl::Seconds(1));
    ASSERT_EQ(told_.size(), count);
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_ / "socket";
  FdLoop loop_{RealClock()};
  Socket listening_, driver_;
  std::string heard_;
  std::vector<std::string> told_;
  std::unique_ptr<DriverAgents> agents_;
};

TEST_F(DriverAgentsTest, EachHostIsStartedAndItsNewestStartAloneCounts) {
  Begin();
  ASSERT_EQ(agents_->StartAll({"h1", "h2"}), absl::OkStatus());
  EXPECT_THAT(NextLine(), HasSubstr("{\"arguments\":[\"agent\",\"--serve\",\"job-1\",\"--host\",\"h1\",\"--grace\","
                                    "\"20\"],\"number\":1,"));
  EXPECT_THAT(NextLine(), HasSubstr("\"number\":2,"));
  ASSERT_EQ(agents_->StartAgain("h1"), absl::OkStatus());
  EXPECT_THAT(NextLine(), HasSubstr("\"number\":3,"));
  for (const char* line : {R"({"number": 1, "ended": "late"})", R"({"number": 3, "line": "hello"})",
                           R"({"number": 2, "waits": "waits for a node"})",
                           R"({"number": 3, "ended": "exited with 1"})", R"({"number": 2, "ended": "its node died"})"})
    Say(line);
  AwaitTold(4);
  EXPECT_THAT(told_, ElementsAre("said h1: hello", "waits h2: h2 waits for a node", "ended h1: exited with 1",
                                 "ended h2: its node died"));
  agents_->EndStart("h2");
  EXPECT_EQ(NextLine(), "{\"end\":2}");
  agents_->Forget("h2");
  Say(R"({"number": 2, "line": "too late"})");
  Say(R"({"number": 3, "line": "bye"})");
  AwaitTold(5);
  EXPECT_EQ(told_.back(), "said h1: bye");
}

TEST_F(DriverAgentsTest, WithoutItsDriverTheJobHasEnded) {
  Begin();
  ASSERT_EQ(agents_->StartAll({"h1"}), absl::OkStatus());
  driver_.Close();
  AwaitTold(1);
  EXPECT_THAT(told_, ElementsAre("ended h1: its driver is gone"));
  EXPECT_TRUE(absl::IsFailedPrecondition(agents_->Explain("h1", "its driver is gone")));
  EXPECT_TRUE(absl::IsUnavailable(agents_->StartAgain("h1")));
}

TEST_F(DriverAgentsTest, AStartThatHasEndedForEverIsTheJobsLast) {
  Begin();
  ASSERT_EQ(agents_->StartAll({"h1", "h2"}), absl::OkStatus());
  Say(R"({"number": 2, "ended": "its node died"})");
  AwaitTold(1);
  EXPECT_TRUE(absl::IsUnavailable(agents_->Explain("h2", "its node died")));
  Say(R"({"number": 1, "ended": "Spark's JVM has died", "for_ever": true})");
  AwaitTold(2);
  EXPECT_EQ(told_.back(), "ended h1: Spark's JVM has died");
  EXPECT_EQ(agents_->Explain("h1", "Spark's JVM has died"),
            absl::FailedPreconditionError("h1: no agent can be started there any more: Spark's JVM has died"));
}

TEST_F(DriverAgentsTest, ADriverThatTalksNonsenseIsLeft) {
  Begin();
  ASSERT_EQ(agents_->StartAll({"h1"}), absl::OkStatus());
  Say("hello");
  AwaitTold(1);
  EXPECT_THAT(told_.front(), HasSubstr("something else than expected: hello"));
}

TEST_F(DriverAgentsTest, ItsEndWaitsForTheAgentsAndThenHasThemEnded) {
  MakeAgents({.by_themselves = absl::ZeroDuration(), .asked = kHang});
  Begin();
  ASSERT_EQ(agents_->StartAll({"h1", "h2"}), absl::OkStatus());
  for (int i = 0; i < 2; ++i) NextLine();
  Say(R"({"number": 1, "ended": "exited with 0"})");
  std::thread driver([this] {
    EXPECT_EQ(NextLine(), "{\"end_all\":\"gently\"}");
    Say(R"({"number": 2, "ended": "killed by signal 15"})");
  });
  agents_.reset();
  driver.join();
  EXPECT_EQ(NextLine(), "") << "it has said no more";
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(DriverAgentsTest, AgentsThatDontEndAreKilledAndGivenUp) {
  MakeAgents({.by_themselves = absl::ZeroDuration(), .asked = absl::ZeroDuration(), .killed = absl::ZeroDuration()});
  Begin();
  ASSERT_EQ(agents_->StartAll({"h1"}), absl::OkStatus());
  NextLine();
  agents_.reset();
  EXPECT_EQ(NextLine(), "{\"end_all\":\"gently\"}");
  EXPECT_EQ(NextLine(), "{\"end_all\":\"at once\"}");
  EXPECT_EQ(NextLine(), "") << "each is said once";
}

TEST_F(DriverAgentsTest, AgentsThatDontEndGentlyEndAtOnce) {
  MakeAgents({.by_themselves = absl::ZeroDuration(), .asked = absl::ZeroDuration(), .killed = kHang});
  Begin();
  ASSERT_EQ(agents_->StartAll({"h1"}), absl::OkStatus());
  NextLine();
  std::thread driver([this] {
    EXPECT_EQ(NextLine(), "{\"end_all\":\"gently\"}");
    EXPECT_EQ(NextLine(), "{\"end_all\":\"at once\"}");
    Say(R"({"number": 1, "ended": "killed by signal 9"})");
  });
  agents_.reset();
  driver.join();
  EXPECT_EQ(NextLine(), "") << "it has said no more";
}

TEST_F(DriverAgentsTest, WhatAnEarlierSupervisorHasLeftIsEnded) {
  std::thread driver([this] {
    driver_ = Socket(accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_EQ(NextLine(), "{\"end_all\":\"at once\"}");
    Say(R"({"number": 1, "ended": "killed by signal 9"})");
    Say(R"({"number": 0, "ended": "all"})");
  });
  EXPECT_TRUE(EndAllAgents(path_, kHang));
  driver.join();
  EXPECT_FALSE(EndAllAgents(folder_ / "nobody", kHang));
}

TEST_F(DriverAgentsTest, TheSocketMayBeOneWithoutAFile) {
  const std::string name = absl::StrCat("@muster-test-", getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, name.size());
  address.sun_path[0] = '\0';
  const Socket listening(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  ASSERT_EQ(bind(listening.fd(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listening.fd(), 1), 0);
  EXPECT_EQ(DriverAgents({.socket = name, .job = "job-1"}, loop_).Begin({}, *this), absl::OkStatus());
}

TEST_F(DriverAgentsTest, WithoutADriverItDoesntBegin) {
  DriverAgents outside({.socket = "", .job = "job-1"}, loop_);
  EXPECT_THAT(std::string(outside.Begin({}, *this).message()), HasSubstr("it has no driver"));
  DriverAgents gone({.socket = folder_ / "nobody", .job = "job-1"}, loop_);
  EXPECT_TRUE(absl::IsUnavailable(gone.Begin({}, *this)));
}

TEST_F(DriverAgentsTest, SaysWhatToDoWhereANodeDoesntReachTheSupervisor) {
  Begin();
  EXPECT_THAT(std::string(agents_->Explain("h1", "can't reach the supervisor at 10.0.0.1:5: refused").message()),
              HasSubstr("h1 doesn't reach the supervisor"));
}

class NoStreams final : public EngineEvents {
  void OnStream(const std::string& /*host*/, AgentStream /*stream*/) override {}
  void OnNoStream(const std::string& /*host*/, const absl::Status& /*why*/) override {}
};

// A firewall lets only these through.
TEST_F(DriverAgentsTest, TheSupervisorListensOnAPortOfTheRunsRange) {
  constexpr PortRange kRange = {.first = 23000, .count = 200};
  NoStreams streams;
  const std::unique_ptr<Engine> engine =
      MakeDriverEngine({.hosts = {"h1"},
                        .environment = {"MUSTER_DRIVER_JOB=1", "MUSTER_DRIVER_AT=here", "MUSTER_DRIVER_SOCKET=" + path_,
                                        "MUSTER_DRIVER_HOSTS=h1=127.0.0.1"},
                        .job = "job-1",
                        .folder = folder_.path(),
                        .ports = kRange},
                       loop_, RealClock());
  ASSERT_EQ(engine->Start(streams), absl::OkStatus());
  const std::string address = ReadRendezvous(folder_ / ".muster-job-1").value().addresses.front();
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) << address;
  EXPECT_GE(port, kRange.first);
  EXPECT_LT(port, kRange.first + kRange.count);
}

}  // namespace
}  // namespace muster::driver_agents_test
