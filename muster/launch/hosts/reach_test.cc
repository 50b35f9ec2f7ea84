#include "muster/launch/hosts/reach.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/net/free_ports.h"

namespace muster::reach_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::IsEmpty;

TEST(ReachTest, AListenerBesideItsReservationIsReachedAndOthersAreNamed) {
  auto ports = FreePorts::Reserve(2);
  ASSERT_TRUE(ports.ok());
  const std::string address = absl::StrCat("127.0.0.1:", ports->port(0));
  const std::string nobody = absl::StrCat("127.0.0.1:", ports->port(1));
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status listened =
        AcceptForReach(address, absl::Minutes(1), [&] { [[maybe_unused]] const auto put = write(ready[1], "x", 1); });
    _exit(listened.ok() ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_THAT(DialForReach({address, address}, absl::Seconds(30)), IsEmpty());
  const std::vector<Unreached> unreached = DialForReach({address, nobody, "nobody:x"}, absl::Seconds(30));
  ASSERT_EQ(unreached.size(), 2U);
  EXPECT_EQ(unreached[0].address, nobody);
  EXPECT_THAT(unreached[0].why, AllOf(HasSubstr("refused"), HasSubstr("(errno 111)")));
  EXPECT_THAT(unreached[1].why, HasSubstr("nobody:x"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

// Accepts nothing by itself: the kernel answers as many connections as its queue holds, at least one.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    own_.sin_family = AF_INET;
    own_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own_;
    EXPECT_EQ(bind(fd_, address(), size), 0);
    EXPECT_EQ(listen(fd_, 0), 0);
    EXPECT_EQ(getsockname(fd_, address(), &size), 0);
  }
  ~Listener() {
    close(fd_);
    for (const int fd : queue_) close(fd);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  std::string name() const { return absl::StrCat("127.0.0.1:", ntohs(own_.sin_port)); }
  // Fills its queue: what comes from now on is dropped without an answer.
  void FallSilent() {
    for (int i = 0; i < 4; ++i) {
      queue_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int connecting = connect(queue_.back(), address(), sizeof own_);
      EXPECT_TRUE(connecting == 0 || errno == EINPROGRESS) << strerror(errno);
    }
  }
  bool IsDialledWithin(absl::Duration patience) const {
    pollfd ready = {.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) == 1;
  }

 private:
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&own_); }

  const int fd_;
  sockaddr_in own_ = {};
  std::vector<int> queue_;
};

TEST(ReachTest, ADiallerThatHearsNothingEnds) {
  Listener silent;
  silent.FallSilent();
  const std::vector<Unreached> unreached = DialForReach({silent.name(), silent.name()}, absl::Milliseconds(100));
  ASSERT_EQ(unreached.size(), 2U);
  for (const Unreached& one : unreached) EXPECT_EQ(one.why, "no answer within 100ms");
}

// The last one is dialled although none of the others will answer for an hour.
TEST(ReachTest, AllAreDialledAtOnce) {
  std::array<Listener, 3> silent;
  Listener last;
  for (Listener& one : silent) one.FallSilent();
  const pid_t child = fork();
  if (child == 0) {
    DialForReach({silent[0].name(), silent[1].name(), silent[2].name(), last.name()}, absl::Hours(1));
    _exit(0);
  }
  EXPECT_TRUE(last.IsDialledWithin(absl::Minutes(1))) << "the limit turns a hang into a failed test";
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(ReachTest, ABrokenAddressCannotBeListenedAt) {
  EXPECT_FALSE(AcceptForReach("nowhere", absl::Seconds(1), [] {}).ok());
}

}  // namespace
}  // namespace muster::reach_test
