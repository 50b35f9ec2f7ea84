// A TCP server and channel on one loop for tests, and peers that send whatever the test likes. Not thread-safe.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/transport/frame.h"
#include "muster/transport/handshake.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/io/tcp_address.h"
#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/tcp/tcp_transport.h"
#include "muster/transport/testing/scripted_handler.h"

namespace muster {

// A peer that sends whatever the test likes.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address) {
    const std::vector<Endpoint> endpoints = *Resolve(*ParseTcpAddress(address), /*numeric_only=*/true);
    socket_ = Socket(socket(endpoints[0].family(), SOCK_STREAM, 0));
    EXPECT_EQ(connect(socket_.fd(), endpoints[0].get(), endpoints[0].length), 0);
  }
  explicit RawPeer(Socket socket) : socket_(std::move(socket)) {}

  void Send(const std::string& bytes) {
    EXPECT_EQ(send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // As much as the kernel takes at once; how much that was.
  size_t SendSome(const std::string& bytes) {
    return static_cast<size_t>(
        std::max(send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT), ssize_t{0}));
  }
  // Takes what has come, at most `most` bytes; false once the other side has closed.
  bool Receive(size_t most = 1 << 20) {
    std::string piece(most, '\0');
    const ssize_t n = recv(socket_.fd(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (n > 0) received_.append(piece, 0, n);
    return n > 0 || (n < 0 && errno == EAGAIN);
  }
  std::string& received() { return received_; }

 private:
  Socket socket_;
  std::string received_;
};

inline std::string Frame(const FrameHeader& header, const std::string& control = "") {
  FrameHeaderBytes bytes;
  EncodeFrameHeader(header, bytes);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + control;
}

inline std::string RequestFrame(uint64_t id, uint16_t method, const std::string& control) {
  FrameHeader header;
  header.method = method;
  header.request_id = id;
  header.control_bytes = static_cast<uint32_t>(control.size());
  return Frame(header, control);
}

// A server with ScriptedHandler at an address of loopback, and a channel to it.
class TcpTransportTest : public ::testing::Test {
 protected:
  explicit TcpTransportTest(JobToken token = {"token"}) : token_(std::move(token)) {}

  // Call after setting the options.
  void Start(const std::string& address = "127.0.0.1:0") {
    transport_ = std::make_unique<TcpTransport>(loop_, token_, options_);
    absl::StatusOr<std::unique_ptr<Listener>> listener = transport_->Listen(address, handler_);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    channel_ = transport_->Connect(listener_->address());
  }

  bool Await(absl::FunctionRef<bool()> done) {
    // Waits in slices, because what the raw peers see isn't an event of the loop.
    for (const absl::Time end = loop_.Now() + absl::Seconds(30); loop_.Now() < end;) {
      if (loop_.RunUntil(done, loop_.Now() + absl::Milliseconds(5))) return true;
    }
    return false;
  }

  absl::StatusOr<Reply> Ask(Channel& channel, uint16_t method, std::string control = "",
                            absl::Duration timeout = absl::Seconds(20)) {
    Request request;
    request.method = method;
    request.control = std::move(control);
    request.deadline = loop_.Now() + timeout;
    std::optional<absl::StatusOr<Reply>> result;
    channel.Call(request, [&](absl::StatusOr<Reply> reply) { result = std::move(reply); });
    if (!Await([&] { return result.has_value(); })) return absl::InternalError("the test has waited in vain");
    return *std::move(result);
  }
  bool Works() { return Ask(*channel_, ScriptedHandler::Method::kEcho).ok(); }

  void PassHandshake(RawPeer& peer) {
    ClientHandshake handshake({.token = token_}, RandomNonce());
    peer.Send(handshake.Advance({}).to_send);
    bool passed = false;
    ASSERT_TRUE(Await([&] {
      if (!peer.Receive()) return true;
      const Handshake::Step step = handshake.Advance(AsBytes(peer.received().data(), peer.received().size()));
      peer.received().erase(0, step.used);
      if (!step.to_send.empty()) peer.Send(step.to_send);
      passed = step.passed;
      return passed;
    }));
    ASSERT_TRUE(passed);
  }

  bool AwaitClosed(RawPeer& peer) {
    return Await([&] { return !peer.Receive(); });
  }

  const JobToken token_;
  TcpOptions options_;
  TcpEventLoop loop_;
  ScriptedHandler handler_;
  std::unique_ptr<TcpTransport> transport_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Channel> channel_;
};

}  // namespace muster
