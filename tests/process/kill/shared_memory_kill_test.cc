// Connections through shared memory whose ends are killed with SIGKILL, or live in their own network namespaces: the
// other end notices at once, by the end of a socket, and nothing of them is left.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "muster/transport/tcp/tcp_transport.h"
#include "muster/transport/testing/scripted_handler.h"
#include "tests/process/testing/killed_processes.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/process.h"

namespace muster::shared_memory_kill_test {
namespace {

using Method = ScriptedHandler::Method;

constexpr size_t kBytes = 1 << 20;

// Counts those in this machine's network namespace.
size_t ListeningForShared() {
  std::ifstream sockets("/proc/net/unix");
  size_t count = 0;
  for (std::string line; std::getline(sockets, line);) count += line.find("@muster-shm-") != std::string::npos ? 1 : 0;
  return count;
}

Request Echo(const std::vector<std::byte>& bulk, std::vector<std::byte>& into) {
  Request request;
  request.method = Method::kEcho;
  request.bulk = {ByteSpan(bulk)};
  request.into = {MutableByteSpan(into)};
  return request;
}

// What client and server, in separate processes, tell each other outside their connection.
struct Board {
  std::atomic<bool> ready;
  char address[64];
  std::atomic<int> calls;
  std::atomic<bool> in_shared_memory;
  std::atomic<bool> failed;
};

class SharedMemoryKillTest : public ::testing::Test {
 protected:
  bool Await(absl::FunctionRef<bool()> done) { return loop_.RunUntil(done, loop_.Now() + absl::Seconds(60)); }

  const LeftBehind left_behind_;
  TcpEventLoop loop_;
  SharedWithChildren<Board> board_;
};

// The silence that would otherwise end a connection is longer than the test waits: the socket must tell.
TEST_F(SharedMemoryKillTest, AServerSeesAtOnceThatItsClientIsGone) {
  const size_t listening = ListeningForShared();
  const size_t descriptors = EntriesOf("/proc/self/fd").size();
  {
    ScriptedHandler handler;
    TcpTransport transport(loop_, JobToken{}, TcpOptions{.stall_timeout = absl::Hours(1)});
    const auto listener = *transport.Listen("127.0.0.1:0", handler);
    for (int life = 0; life < 20; ++life) {
      board_->calls = 0;
      const pid_t client = Fork([&] {
        TcpEventLoop loop;
        TcpTransport calling(loop);
        const auto channel = calling.Connect(listener->address());
        const std::vector<std::byte> bulk = Pattern(kBytes);
        std::vector<std::byte> into(kBytes);
        while (true) {
          bool answered = false;
          channel->Call(Echo(bulk, into), [&](const absl::StatusOr<Reply>&) { answered = true; });
          loop.RunUntil([&] { return answered; }, absl::InfiniteFuture());
          ++board_->calls;
        }
      });
      // Wherever it happens to be then.
      EXPECT_TRUE(Await([&] { return board_->calls > life; }));
      EXPECT_EQ(listener->stats().in_shared_memory.size(), 1);
      kill(client, SIGKILL);
      EXPECT_TRUE(Await([&] { return listener->stats().connections == 0; }));
      EXPECT_EQ(handler.targets, 0);
      EXPECT_EQ(waitpid(client, nullptr, 0), client);
    }
    EXPECT_EQ(listener->stats().dropped_malformed, 0);
  }
  EXPECT_EQ(EntriesOf("/proc/self/fd").size(), descriptors);
  EXPECT_EQ(ListeningForShared(), listening);
}

TEST_F(SharedMemoryKillTest, AClientSeesAtOnceThatItsServerIsGone) {
  const size_t listening = ListeningForShared();
  TcpTransport calling(loop_, JobToken{},
                       TcpOptions{.stall_timeout = absl::Hours(1), .silence_timeout = absl::Hours(1)});
  for (int life = 0; life < 5; ++life) {
    board_->ready = false;
    board_->in_shared_memory = false;
    const pid_t server = Fork([&] {
      TcpEventLoop loop;
      TcpTransport serving(loop);
      ScriptedHandler handler;
      const auto listener = *serving.Listen("127.0.0.1:0", handler);
      std::strncpy(board_->address, listener->address().c_str(), sizeof board_->address - 1);
      board_->ready = true;
      loop.RunUntil(
          [&] {
            if (!listener->stats().in_shared_memory.empty()) board_->in_shared_memory = true;
            return false;
          },
          absl::InfiniteFuture());
    });
    while (!board_->ready) sched_yield();
    const auto channel = calling.Connect(board_->address);
    std::optional<absl::Status> result;
    Request request;
    request.method = Method::kDefer;  // never answered
    channel->Call(request, [&](const absl::StatusOr<Reply>& reply) { result = reply.status(); });
    while (!board_->in_shared_memory) loop_.RunUntil([] { return false; }, loop_.Now() + absl::Milliseconds(1));
    EXPECT_FALSE(result.has_value());
    kill(server, SIGKILL);
    EXPECT_TRUE(Await([&] { return result.has_value(); }));
    EXPECT_EQ(result->code(), absl::StatusCode::kUnavailable) << *result;
    EXPECT_EQ(waitpid(server, nullptr, 0), server);
  }
  EXPECT_EQ(ListeningForShared(), listening);
}

// Another host has its own network. The TCP connection is made before, as there is no way between the two networks.
TEST_F(SharedMemoryKillTest, ANetworkNamespaceOfItsOwnIsAnotherHost) {
  ScriptedHandler handler;
  const JobToken token = {"the token of two hosts"};  // from another host, none is found
  TcpTransport transport(loop_, token);
  const auto listener = *transport.Listen("127.0.0.1:0", handler);
  board_->ready = false;
  board_->failed = false;
  const pid_t client = Fork([&] {
    TcpEventLoop loop;
    TcpTransport calling(loop, token);
    const auto channel = calling.Connect(listener->address());
    const std::vector<std::byte> bulk = Pattern(kBytes);
    std::vector<std::byte> into(kBytes);
    bool answered = false;
    channel->Call(Echo(bulk, into), [&](const absl::StatusOr<Reply>& reply) {
      board_->failed = !reply.ok() || into != bulk;
      answered = true;
    });
    loop.RunUntil([] { return false; }, absl::InfinitePast());  // connects
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) _exit(77);
    loop.RunUntil([&] { return answered; }, absl::InfiniteFuture());
    board_->ready = true;
    while (true) pause();
  });
  while (!board_->ready) {
    if (waitpid(client, nullptr, WNOHANG) != 0) GTEST_SKIP() << "this system allows no network namespaces";
    loop_.RunUntil([] { return false; }, loop_.Now() + absl::Milliseconds(1));
  }
  EXPECT_FALSE(board_->failed);
  EXPECT_EQ(listener->stats().connections, 1);
  EXPECT_TRUE(listener->stats().in_shared_memory.empty());
  kill(client, SIGKILL);
  EXPECT_EQ(waitpid(client, nullptr, 0), client);
}

}  // namespace
}  // namespace muster::shared_memory_kill_test
