// Tests a channel's own defences against a server that doesn't keep to the protocol.
#include "muster/transport/tcp/tcp_channel.h"

#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/transport/testing/tcp_transport_fixture.h"

namespace muster::tcp_channel_test {
namespace {

using ::testing::HasSubstr;
using Method = ScriptedHandler::Method;

// The channel faces a server made of a raw socket.
class TcpChannelTest : public TcpTransportTest {
 protected:
  explicit TcpChannelTest(JobToken token = {"token"}) : TcpTransportTest(std::move(token)) {}

  void StartRaw() {
    transport_ = std::make_unique<TcpTransport>(loop_, token_, options_);
    const std::vector<Endpoint> endpoints = *Resolve(TcpAddress{"127.0.0.1", "0"}, /*numeric_only=*/true);
    listening_ = Socket(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    ASSERT_EQ(bind(listening_.fd(), endpoints[0].get(), endpoints[0].length), 0);
    ASSERT_EQ(listen(listening_.fd(), 10), 0);
    channel_ = transport_->Connect(LocalEndpoint(listening_.fd()).ToString());
    Request request;
    request.method = Method::kEcho;
    request.into = {MutableByteSpan(into_)};
    channel_->Call(request, [this](const absl::StatusOr<Reply>& reply) { result_ = reply.status(); });
  }
  std::unique_ptr<RawPeer> Accept() {
    Socket accepted;
    EXPECT_TRUE(Await([&] {
      accepted = Socket(accept(listening_.fd(), nullptr, nullptr));
      return accepted.valid();
    }));
    return std::make_unique<RawPeer>(std::move(accepted));
  }
  // Also receives the request.
  std::unique_ptr<RawPeer> AcceptAndPass() {
    std::unique_ptr<RawPeer> peer = Accept();
    ServerHandshake handshake({.token = token_}, RandomNonce());
    EXPECT_TRUE(Await([&] {
      if (!peer->Receive()) return true;
      const Handshake::Step step = handshake.Advance(AsBytes(peer->received().data(), peer->received().size()));
      peer->received().erase(0, step.used);
      if (!step.to_send.empty()) peer->Send(step.to_send);
      return step.passed;
    }));
    EXPECT_TRUE(Await([&] { return peer->Receive() && peer->received().size() >= kFrameHeaderBytes; }));
    return peer;
  }
  absl::Status AwaitResult() {
    EXPECT_TRUE(Await([&] { return result_.has_value(); }));
    return result_.value_or(absl::InternalError("none"));
  }

  Socket listening_;
  std::vector<std::byte> into_ = std::vector<std::byte>(100);
  std::optional<absl::Status> result_;
};

TEST_F(TcpChannelTest, APeerThatIsNoServerOfOursIsNamed) {
  StartRaw();
  const std::unique_ptr<RawPeer> peer = Accept();
  peer->Send("HTTP/1.1 400 Bad Request\r\n\r\n");
  const absl::Status status = AwaitResult();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(channel_->peer()));
}

TEST_F(TcpChannelTest, MalformedRepliesBreakTheConnection) {
  FrameHeader unasked;
  unasked.type = FrameType::kReply;
  unasked.request_id = 2;
  FrameHeader request;
  request.request_id = 1;
  for (const std::string& bytes : {std::string(40, 'x'), Frame(unasked), Frame(request)}) {
    result_.reset();
    StartRaw();
    const std::unique_ptr<RawPeer> peer = AcceptAndPass();
    peer->Send(bytes);
    EXPECT_EQ(AwaitResult().code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(AwaitClosed(*peer));
  }
}

// The caller's memory is still being sent: the call must not end as if it weren't.
TEST_F(TcpChannelTest, AReplyBeforeTheRequestsEndBreaksTheConnection) {
  StartRaw();
  const std::unique_ptr<RawPeer> peer = AcceptAndPass();
  const std::vector<std::byte> bulk(64 << 20);
  std::optional<absl::Status> second;
  Request request;
  request.method = Method::kEcho;
  request.bulk = {ByteSpan(bulk)};
  channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { second = reply.status(); });
  FrameHeader reply;
  reply.type = FrameType::kReply;
  reply.request_id = 2;
  peer->Send(Frame(reply));
  EXPECT_TRUE(Await([&] { return second.has_value(); }));
  EXPECT_EQ(second->code(), absl::StatusCode::kUnavailable) << *second;
}

TEST_F(TcpChannelTest, WhatWasntBegunGoesWithTheNextConnection) {
  StartRaw();
  std::unique_ptr<RawPeer> peer = AcceptAndPass();
  const std::vector<std::byte> bulk(64 << 20);
  std::optional<absl::Status> begun, waiting;
  Request request;
  request.method = Method::kEcho;
  request.bulk = {ByteSpan(bulk)};
  channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { begun = reply.status(); });
  request.bulk = {};
  request.control = "the third";
  channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { waiting = reply.status(); });
  peer = nullptr;
  EXPECT_EQ(AwaitResult().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(Await([&] { return begun.has_value(); }));
  EXPECT_EQ(begun->code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(waiting.has_value());

  peer = AcceptAndPass();
  EXPECT_THAT(peer->received(), HasSubstr("the third"));
  FrameHeader reply;
  reply.type = FrameType::kReply;
  reply.request_id = 3;
  peer->Send(Frame(reply));
  ASSERT_TRUE(Await([&] { return waiting.has_value(); }));
  EXPECT_TRUE(waiting->ok()) << *waiting;
}

TEST_F(TcpChannelTest, AReplyThatDoesntGetOnBreaksTheConnection) {
  options_.stall_timeout = absl::Milliseconds(100);
  StartRaw();
  const std::unique_ptr<RawPeer> peer = AcceptAndPass();
  FrameHeader reply;
  reply.type = FrameType::kReply;
  reply.request_id = 1;
  reply.bulk_bytes = 100;
  peer->Send(Frame(reply) + "begun");
  EXPECT_EQ(AwaitResult().code(), absl::StatusCode::kUnavailable);
}

TEST_F(TcpChannelTest, ASilentPeerIsPingedAndGivenUp) {
  options_.ping_interval = absl::Milliseconds(20);
  options_.silence_timeout = absl::Milliseconds(100);
  StartRaw();
  const std::unique_ptr<RawPeer> peer = AcceptAndPass();
  const absl::Status status = AwaitResult();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing was heard"));
  FrameHeader ping;
  ping.type = FrameType::kPing;
  peer->Receive();
  EXPECT_THAT(peer->received(), HasSubstr(Frame(ping)));
}

TEST_F(TcpChannelTest, APeerThatAnswersPingsMayTakeItsTime) {
  options_.ping_interval = absl::Milliseconds(5);
  options_.silence_timeout = absl::Seconds(10);
  Start();
  std::optional<absl::Status> result;
  Request request;
  request.method = Method::kDefer;
  channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { result = reply.status(); });
  ASSERT_TRUE(Await([&] { return handler_.deferred.size() == 1; }));
  const uint64_t before = channel_->stats().bytes_received;
  ASSERT_TRUE(Await([&] { return channel_->stats().bytes_received >= before + 20 * kFrameHeaderBytes; }));
  handler_.deferred[0].Send("");
  EXPECT_TRUE(Await([&] { return result.has_value(); }));
  EXPECT_TRUE(result->ok()) << *result;
}

TEST_F(TcpChannelTest, CancelInTheMiddleOfAReplyLeavesTheMemoryAlone) {
  StartRaw();
  const std::unique_ptr<RawPeer> peer = AcceptAndPass();
  FrameHeader reply;
  reply.type = FrameType::kReply;
  reply.request_id = 1;
  reply.bulk_bytes = 100;
  peer->Send(Frame(reply) + "begun");
  ASSERT_TRUE(Await([&] { return into_[4] == std::byte{'n'}; }));
  channel_->Cancel(Channel::CallId{1});
  EXPECT_EQ(AwaitResult().code(), absl::StatusCode::kCancelled);

  // The rest is discarded, and the connection goes on.
  const std::vector<std::byte> before = into_;
  std::optional<absl::Status> second;
  Request request;
  request.method = Method::kEcho;
  channel_->Call(request, [&](const absl::StatusOr<Reply>& r) { second = r.status(); });
  reply.request_id = 2;
  reply.bulk_bytes = 0;
  peer->Send(std::string(95, 'x') + Frame(reply));
  EXPECT_TRUE(Await([&] { return second.has_value(); }));
  EXPECT_TRUE(second->ok()) << *second;
  EXPECT_TRUE(into_ == before);
  EXPECT_EQ(channel_->stats().connects, 1);
}

struct HasScratch {
  ScratchFolder scratch;
};

class MovedPeerTest : protected HasScratch, public TcpChannelTest {
 protected:
  MovedPeerTest() : TcpChannelTest({.secret = "token", .cluster_file = scratch / "cluster"}) {}
};

// As when its host was lost: nobody answers at the address that everybody was told, and the cluster file says where the
// task is now.
TEST_F(MovedPeerTest, APeerThatHasMovedIsFound) {
  Start();
  const std::string moved = listener_->address();
  listener_ = nullptr;
  std::optional<absl::Status> result;
  Request request;
  request.method = Method::kEcho;
  channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { result = reply.status(); });
  EXPECT_TRUE(Await([&] { return channel_->trouble() != "there is no answer yet"; }));
  auto listener = transport_->Listen("127.0.0.1:0", handler_).value();
  std::ofstream(token_.cluster_file) << "ps:0 " << listener->address() << " " << moved << "\n";
  EXPECT_TRUE(Await([&] { return result.has_value(); }));
  EXPECT_TRUE(result->ok()) << *result;
  EXPECT_EQ(channel_->peer(), moved) << "its name stays";
}

// The connection still stands, but nothing comes over it any more.
TEST_F(MovedPeerTest, ASilentConnectionIsLeftForThePlaceToWhichThePeerHasMoved) {
  options_.ping_interval = absl::Milliseconds(20);
  StartRaw();
  const std::unique_ptr<RawPeer> peer = AcceptAndPass();
  auto listener = transport_->Listen("127.0.0.1:0", handler_).value();
  std::ofstream(token_.cluster_file) << "ps:0 " << listener->address() << " " << channel_->peer() << "\n";
  EXPECT_EQ(AwaitResult().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Works());
}

}  // namespace
}  // namespace muster::tcp_channel_test
