#include "muster/launch/agent_server/stream_bridge.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

namespace muster::stream_bridge_test {
namespace {

class StreamBridgeTest : public ::testing::Test {
 protected:
  StreamBridgeTest() {
    signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(pipe2(in_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socket_.data()), 0);
    for (const int fd : {in_[1], out_[0], socket_[1]}) fcntl(fd, F_SETFL, O_NONBLOCK);
    bridge_ = std::make_unique<StreamBridge>(loop_, in_[0], out_[1], socket_[0]);
  }
  ~StreamBridgeTest() override {
    bridge_.reset();
    for (const int fd : {in_[0], in_[1], out_[0], out_[1], socket_[0], socket_[1]})
      if (fd >= 0) close(fd);
  }

  static void Close(int& fd) { close(std::exchange(fd, -1)); }
  // Moves `bytes` bytes from one end to the other through the bridge, as fast as each takes them.
  void Pass(int into, int from, size_t bytes) {
    size_t put = 0, got = 0;
    const std::string text(100'000, 'x');
    std::array<char, 30'000> piece;
    while (got < bytes) {
      const ssize_t wrote = write(into, text.data(), std::min(text.size(), bytes - put));
      if (wrote > 0) put += static_cast<size_t>(wrote);
      loop_.RunOnce(absl::InfinitePast());
      const ssize_t read_now = read(from, piece.data(), piece.size());
      if (read_now > 0) got += static_cast<size_t>(read_now);
    }
    EXPECT_EQ(got, bytes);
  }
  // How much it takes when nobody reads.
  size_t Fill(int into) {
    const std::string text(1000, 'x');
    size_t put = 0;
    for (int idle = 0; idle < 10; loop_.RunOnce(absl::InfinitePast())) {
      const ssize_t wrote = write(into, text.data(), text.size());
      idle = wrote > 0 ? 0 : idle + 1;
      if (wrote > 0) put += static_cast<size_t>(wrote);
    }
    return put;
  }

  std::array<int, 2> in_, out_, socket_;
  FdLoop loop_{RealClock()};
  std::unique_ptr<StreamBridge> bridge_;
};

TEST_F(StreamBridgeTest, CopiesBothWays) {
  Pass(in_[1], socket_[1], 3'000'000);
  Pass(socket_[1], out_[0], 3'000'000);
  EXPECT_FALSE(bridge_->done());
}

TEST_F(StreamBridgeTest, HoldsLittleIfNobodyReads) {
  EXPECT_LT(Fill(in_[1]), 1'000'000U);
  EXPECT_LT(Fill(socket_[1]), 1'000'000U);
  EXPECT_FALSE(bridge_->done());
}

TEST_F(StreamBridgeTest, EndsWithTheInputAndHasWrittenWhatCameBefore) {
  ASSERT_EQ(write(in_[1], "last", 4), 4);
  Close(in_[1]);
  while (!bridge_->done()) loop_.RunOnce(absl::InfiniteFuture());
  char text[5] = {};
  EXPECT_EQ(read(socket_[1], text, 4), 4);
  EXPECT_STREQ(text, "last");
}

TEST_F(StreamBridgeTest, EndsWithTheSocketAndHasWrittenWhatCameBefore) {
  ASSERT_EQ(write(socket_[1], "last", 4), 4);
  Close(socket_[1]);
  while (!bridge_->done()) loop_.RunOnce(absl::InfiniteFuture());
  char text[5] = {};
  EXPECT_EQ(read(out_[0], text, 4), 4);
  EXPECT_STREQ(text, "last");
}

TEST_F(StreamBridgeTest, EndsIfTheOutputIsGone) {
  Close(out_[0]);
  ASSERT_EQ(write(socket_[1], "lost", 4), 4);
  while (!bridge_->done()) loop_.RunOnce(absl::InfiniteFuture());
}

TEST_F(StreamBridgeTest, LeavesTheDescriptorsAsTheyWere) {
  EXPECT_NE(fcntl(in_[0], F_GETFL) & O_NONBLOCK, 0);
  bridge_.reset();
  EXPECT_EQ(fcntl(in_[0], F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(fcntl(out_[1], F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace muster::stream_bridge_test
