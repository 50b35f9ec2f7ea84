// Agents that connect to their supervisor over TCP: who passes, and what becomes of connections that break.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/agent/agent_listener.h"
#include "muster/launch/agent/rendezvous.h"
#include "muster/launch/agent_server/supervisor_dialer.h"
#include "muster/transport/io/tcp_address.h"

namespace muster::agent_over_tcp_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

// Turns a hang into a failed test.
constexpr absl::Duration kHang = absl::Minutes(1);

class AgentOverTcpTest : public ::testing::Test {
 protected:
  struct Arrival {
    std::string host;
    Socket socket;
    std::string rest;
  };

  AgentOverTcpTest() {
    signal(SIGPIPE, SIG_IGN);
    listener_ = Listener();
  }
  std::unique_ptr<AgentListener> Listener() {
    return AgentListener::Listen({"h1", "h2"}, secret_, loop_, clock_,
                                 [this](const std::string& host, Socket socket, const std::string& rest) {
                                   arrived_.push_back({host, std::move(socket), rest});
                                 })
        .value();
  }
  std::string GreetingAs(const std::string& host) const { return GreetingOf(host, KeyOfHost(secret_, host)); }
  Rendezvous Meeting(std::vector<std::string> addresses) const {
    return {.addresses = std::move(addresses), .secret = secret_};
  }
  std::string Address() const { return absl::StrCat("127.0.0.1:", listener_->port()); }
  std::unique_ptr<SupervisorDialer> Dialer() {
    return std::make_unique<SupervisorDialer>(
        SupervisorDialerOptions{.rendezvous = file_,
                                .host = "h1",
                                .connected =
                                    [this](Socket socket, const std::string& key) {
                                      connected_.push_back(std::move(socket));
                                      key_ = key;
                                    },
                                .log = [this](const std::string& line) { log_.push_back(line); },
                                .lookup = {"/bin/sh", scratch_ / "lookup"}},
        loop_, clock_);
  }
  Socket Connect() const {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Endpoint to = Resolve(ParseTcpAddress(Address()).value(), true).value().front();
    EXPECT_EQ(connect(socket.fd(), to.get(), to.length), 0);
    return socket;
  }
  static void Say(const Socket& socket, const std::string& text) {
    EXPECT_EQ(write(socket.fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  template <typename Done>
  void RunUntil(Done done, SupervisorDialer* dialer = nullptr) {
    const absl::Time give_up = RealClock().Now() + kHang;
    while (!done() && RealClock().Now() < give_up) {
      loop_.RunOnce(RealClock().Now() + absl::Milliseconds(5));
      listener_->OnTime();
      if (dialer != nullptr) dialer->OnTime();
    }
    ASSERT_TRUE(done());
  }
  // Returns whether the other end has closed the connection.
  static bool IsClosed(const Socket& socket) {
    pollfd end = {socket.fd(), POLLIN, 0};
    char byte;
    return poll(&end, 1, 0) == 1 && recv(socket.fd(), &byte, 1, MSG_PEEK) <= 0;
  }

  const ScratchFolder scratch_;
  const std::string file_ = scratch_.path() + "/rendezvous";
  SimulatedClock clock_;
  FdLoop loop_{RealClock()};
  std::unique_ptr<AgentListener> listener_;
  std::vector<Arrival> arrived_;
  std::vector<Socket> connected_;
  const std::string secret_ = NewRendezvous({}).secret;
  std::string key_;
  std::vector<std::string> log_;
};

TEST_F(AgentOverTcpTest, AConnectionWaitsUntilItsHostIsWanted) {
  const Socket agent = Connect();
  Say(agent, GreetingAs("h1").substr(0, 5));
  listener_->Want("h2");
  const Socket other = Connect();
  Say(other, GreetingAs("h2") + "MUSTER");
  RunUntil([&] { return !arrived_.empty(); });
  Say(agent, GreetingAs("h1").substr(5));
  for (int i = 0; i < 5; ++i) loop_.RunOnce(RealClock().Now() + absl::Milliseconds(2));
  ASSERT_EQ(arrived_.size(), 1U);
  EXPECT_EQ(arrived_[0].host, "h2");
  EXPECT_EQ(arrived_[0].rest, "MUSTER");
  listener_->Want("h1");
  ASSERT_EQ(arrived_.size(), 2U);
  EXPECT_EQ(arrived_[1].host, "h1");
}

TEST_F(AgentOverTcpTest, TheNewestConnectionOfAHostCounts) {
  const Socket old = Connect();
  Say(old, GreetingAs("h1"));
  RunUntil([&, looks = 0]() mutable { return ++looks > 5; });
  const Socket fresh = Connect();
  Say(fresh, GreetingAs("h1"));
  RunUntil([&] { return IsClosed(old); });
  listener_->Want("h1");
  EXPECT_EQ(arrived_.size(), 1U);
  EXPECT_FALSE(IsClosed(fresh));
}

TEST_F(AgentOverTcpTest, StrangersAreTurnedAway) {
  const Socket browser = Connect(), unknown = Connect(), silent = Connect();
  Say(browser, "GET / HTTP/1.1\r\n\r\n");
  Say(unknown, GreetingAs("h3"));
  const Socket liar = Connect();
  listener_->Want("h1");
  Say(liar, GreetingOf("h1", KeyOfHost("another secret", "h1")));
  RunUntil([&] { return IsClosed(browser) && IsClosed(unknown) && IsClosed(liar); });
  EXPECT_FALSE(IsClosed(silent));
  clock_.Advance(absl::Seconds(11));
  RunUntil([&] { return IsClosed(silent); });
  EXPECT_THAT(arrived_, IsEmpty());
}

TEST_F(AgentOverTcpTest, ManyThatSayNothingDontKeepAnAgentAway) {
  std::vector<Socket> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(Connect());
  listener_->Want("h1");
  const Socket agent = Connect();
  Say(agent, GreetingAs("h1"));
  RunUntil([&] { return arrived_.size() == 1; });
  EXPECT_TRUE(IsClosed(silent[0]));
}

TEST_F(AgentOverTcpTest, AnAgentTriesEachAddressAndReadsTheFileAgain) {
  const auto dialer = Dialer();
  dialer->OnTime();
  EXPECT_THAT(log_, ElementsAre(HasSubstr("cannot read " + file_)));
  const Rendezvous rendezvous = Meeting({"127.0.0.1:1", "a name:2", Address()});
  ASSERT_EQ(WriteRendezvous(file_, rendezvous), absl::OkStatus());
  listener_->Want("h1");
  clock_.Advance(absl::Seconds(1));
  RunUntil([&] { return arrived_.size() == 1 && connected_.size() == 1; }, dialer.get());
  EXPECT_EQ(key_, KeyOfHost(rendezvous.secret, "h1"));
  // A next supervisor listens elsewhere.
  listener_ = Listener();
  ASSERT_EQ(WriteRendezvous(file_, Meeting({Address()})), absl::OkStatus());
  listener_->Want("h1");
  dialer->DialAgain(/*was_of_use=*/true);
  clock_.Advance(absl::Seconds(1));
  RunUntil([&] { return arrived_.size() == 2; }, dialer.get());
}

// As a name is in Kubernetes until the pod has its address, and another one after a restart.
TEST_F(AgentOverTcpTest, ANameThatIsntKnownYetIsLookedUpAgain) {
  scratch_.Write("lookup", absl::StrCat("echo $1 >>", scratch_ / "asked", "\n[ $(wc -l <", scratch_ / "asked",
                                        ") -gt 5 ] || { echo not known >&2; exit 1; }\ncat ", scratch_ / "address"));
  scratch_.Write("address", "127.0.0.1:1\n");
  const Rendezvous rendezvous = Meeting({absl::StrCat("supervisor.job:", listener_->port())});
  ASSERT_EQ(WriteRendezvous(file_, rendezvous), absl::OkStatus());
  listener_->Want("h1");
  const auto dialer = Dialer();
  const absl::Time begin = clock_.Now();
  const auto dial_on = [&](size_t arrivals) {
    RunUntil(
        [&] {
          // The clock stands still while a lookup or a connection is on its way.
          if (dialer->deadline() - clock_.Now() <= absl::Seconds(2)) clock_.Advance(absl::Milliseconds(100));
          return arrived_.size() == arrivals;
        },
        dialer.get());
  };
  dial_on(1);
  EXPECT_GT(clock_.Now() - begin, absl::ZeroDuration());
  EXPECT_THAT(log_, ElementsAre(HasSubstr("can't reach the supervisor at supervisor.job:"))) << "it says so once";
  EXPECT_THAT(log_[0], HasSubstr("not known"));
  EXPECT_EQ(scratch_.Read("asked").substr(0, 15), "supervisor.job\n");
  // The next supervisor's pod has another address, where nothing is for a while.
  scratch_.Write("address", "127.0.0.2:1\n");
  listener_->Want("h1");
  dialer->DialAgain(/*was_of_use=*/true);
  dial_on(2);
}

}  // namespace
}  // namespace muster::agent_over_tcp_test
