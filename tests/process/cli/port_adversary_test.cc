// Many tasks get their ports while another process takes whatever ports it can.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "muster/base/net/port_range.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/port_proof.h"
#include "tests/process/testing/process.h"

namespace muster::port_adversary_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;

constexpr int kTasks = 64;

// Binds ports until it ends, and holds the last of them: any that the system gives, and numbers of those that tasks
// get. It listens where it doesn't set SO_REUSEADDR; a listener that sets it may take a port between two lives of a
// task, which nothing prevents.
class PortGrabber {
 public:
  ~PortGrabber() {
    ended_ = true;
    thread_.join();
    for (const int fd : held_) close(fd);
  }
  int taken() const { return taken_; }

 private:
  static constexpr size_t kMostHeld = 400;

  void Grab() {
    const PortRange usual = UsualPorts();
    std::minstd_rand random(1);
    for (int i = 0; !ended_; ++i) {
      const int reuse = i % 2;
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = i % 4 < 2 ? 0 : htons(static_cast<uint16_t>(usual.first + random() % usual.count));
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
      const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                         (reuse == 1 || listen(fd, 1) == 0);
      if (bound) ++taken_;
      held_.push_back(fd);
      if (held_.size() <= kMostHeld) continue;
      close(held_.front());
      held_.pop_front();
    }
  }

  std::atomic<bool> ended_ = false;
  std::atomic<int> taken_ = 0;
  std::deque<int> held_;  // of the thread, until it ends
  std::thread thread_{[this] { Grab(); }};
};

class PortAdversary : public ::testing::Test {
 private:
  const LeftBehind left_behind_;
};

TEST_F(PortAdversary, EveryTaskGetsItsPortWhileAnotherProcessGrabsPortsAllTheTime) {
  const PortGrabber grabber;
  Process run({BinFolder() + "/muster", "run", "--ps", "0", "--workers", absl::StrCat(kTasks), "--", "sh", "-c",
               ScriptThatProvesItsPort()});
  EXPECT_EQ(run.Wait(), 0) << run.err;
  EXPECT_GT(grabber.taken(), kTasks);
  for (int i = 0; i < kTasks; ++i)
    EXPECT_THAT(After(run.out, absl::StrCat("[worker:", i, "] ")), ElementsAre("it was mine")) << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("address is in use")));
}

}  // namespace
}  // namespace muster::port_adversary_test
