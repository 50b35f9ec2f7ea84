// Runs two loops in two threads, for thread-sanitizer: server and client share nothing but the transport.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "muster/transport/loopback/loopback_transport.h"
#include "muster/transport/tcp/tcp_transport.h"
#include "muster/transport/testing/scripted_handler.h"

namespace muster::transport_threads_test {
namespace {

using Method = ScriptedHandler::Method;

class TransportThreadsTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Transport> MakeTransport(TcpEventLoop& loop) {
    if (GetParam() == "loopback") return std::make_unique<LoopbackTransport>(network_, loop);
    return std::make_unique<TcpTransport>(
        loop, JobToken{}, TcpOptions{.shared_memory = {.enabled = GetParam() == "shm", .least_beside = 1 << 10}});
  }

  // Serves until `stop`, with a new listener at each `restart`.
  void Serve() {
    TcpEventLoop loop;
    const std::unique_ptr<Transport> transport = MakeTransport(loop);
    ScriptedHandler handler;
    std::unique_ptr<Listener> listener = *transport->Listen("127.0.0.1:0", handler);
    address_ = listener->address();
    server_loop_ = &loop;
    ready_ = true;
    loop.RunUntil(
        [&] {
          if (restart_.exchange(false)) {
            listener = nullptr;
            listener = *transport->Listen(address_, handler);
          }
          return stop_.load();
        },
        absl::InfiniteFuture());
    server_loop_ = nullptr;
    stopped_ = true;
    // Waits until no other thread may wake this loop any more.
    while (!may_end_) std::this_thread::yield();
  }

  LoopbackNetwork network_;
  std::string address_;  // constant once ready_
  std::atomic<TcpEventLoop*> server_loop_{nullptr};
  std::atomic<bool> ready_{false}, restart_{false}, stop_{false}, stopped_{false}, may_end_{false};
};

TEST_P(TransportThreadsTest, CallsCancelsAndRestarts) {
  std::thread server([this] { Serve(); });
  while (!ready_) std::this_thread::yield();
  TcpEventLoop* const server_loop = server_loop_;
  {
    TcpEventLoop loop;
    const std::unique_ptr<Transport> transport = MakeTransport(loop);
    const std::unique_ptr<Channel> channel = transport->Connect(address_);
    std::atomic<bool> over{false};
    std::thread onlooker([&] {
      // One that a restart has kept from being sent is counted once more.
      while (!over) EXPECT_LE(channel->stats().calls, 200u + 4u);
    });
    int succeeded = 0;
    for (int i = 0; i < 200; ++i) {
      auto sent = std::make_unique<std::vector<std::byte>>(Pattern(i * 500, i));
      auto received = std::make_unique<std::vector<std::byte>>(i * 500);
      Request request;
      request.method = Method::kEcho;
      request.bulk = {ByteSpan(*sent)};
      request.into = {MutableByteSpan(*received)};
      request.deadline = loop.Now() + absl::Seconds(60);
      std::optional<absl::Status> result;
      const Channel::CallId call =
          channel->Call(request, [&](const absl::StatusOr<Reply>& reply) { result = reply.status(); });
      if (i % 7 == 3) channel->Cancel(call);
      if (i % 50 == 20) {
        restart_ = true;
        server_loop->Post([] {});
      }
      EXPECT_TRUE(loop.RunUntil([&] { return result.has_value(); }, absl::InfiniteFuture()));
      if (result->ok()) {
        ++succeeded;
        EXPECT_TRUE(*sent == *received);
      }
    }
    over = true;
    onlooker.join();
    EXPECT_GT(succeeded, 100);
    EXPECT_GE(channel->stats().connects, 4);
  }
  stop_ = true;
  server_loop->Post([] {});
  while (!stopped_) std::this_thread::yield();
  may_end_ = true;
  server.join();
}

INSTANTIATE_TEST_SUITE_P(Kinds, TransportThreadsTest, ::testing::Values("tcp", "shm", "loopback"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster::transport_threads_test
