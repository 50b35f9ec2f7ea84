// Tests what only TCP has: strangers, stalled and slow peers, limits, addresses. transport_contract_test.cc tests the
// contract that all transports share.
#include "muster/transport/tcp/tcp_transport.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/transport/backoff.h"
#include "muster/transport/testing/tcp_transport_fixture.h"

namespace muster::tcp_transport_test {
namespace {

using ::testing::HasSubstr;
using Method = ScriptedHandler::Method;

TEST_F(TcpTransportTest, GarbageInPlaceOfAHandshakeIsDroppedAndCounted) {
  Start();
  ASSERT_TRUE(Works());
  uint64_t dropped = 0;
  for (const std::string& bytes : {std::string(17, '\0'), std::string("GET / HTTP/1.1\r\n\r\n"), std::string("M\n"),
                                   std::string(100000, '\xff'), std::string()}) {
    {
      RawPeer stranger(listener_->address());
      if (!bytes.empty()) {
        stranger.Send(bytes);
        EXPECT_TRUE(AwaitClosed(stranger));
      }
    }
    ++dropped;
    EXPECT_TRUE(Await([&] { return listener_->stats().dropped_handshake == dropped; })) << dropped;
    EXPECT_TRUE(Works());
  }
  EXPECT_EQ(listener_->stats().connections, 1);
  EXPECT_EQ(listener_->stats().accepted, 1);
  EXPECT_EQ(handler_.Count("connect"), 1);
  EXPECT_EQ(channel_->stats().connects, 1);
}

TEST_F(TcpTransportTest, AHandshakeThatDoesntGetOnIsDropped) {
  options_.handshake_timeout = absl::Milliseconds(300);
  Start();
  ASSERT_TRUE(Works());
  RawPeer silent(listener_->address());
  RawPeer slow(listener_->address());
  slow.Send("MUSTER\r\n");
  EXPECT_TRUE(AwaitClosed(silent));
  EXPECT_TRUE(AwaitClosed(slow));
  EXPECT_TRUE(Await([&] { return listener_->stats().dropped_handshake == 2; }));
  EXPECT_TRUE(Works());
}

TEST_F(TcpTransportTest, AClientWithoutAHelloIsDroppedSoonAndOneWithAHelloHasLonger) {
  options_.hello_timeout = absl::Milliseconds(200);
  options_.handshake_timeout = absl::Hours(1);
  Start();
  RawPeer greeted(listener_->address());
  greeted.Send(ClientHandshake({.token = token_}, RandomNonce()).Advance({}).to_send);
  ASSERT_TRUE(Await([&] { return greeted.Receive() && !greeted.received().empty(); }));
  RawPeer silent(listener_->address());
  RawPeer slow(listener_->address());
  slow.Send("MUSTER\r\n");
  EXPECT_TRUE(AwaitClosed(silent));
  EXPECT_TRUE(AwaitClosed(slow));
  EXPECT_TRUE(greeted.Receive());
  EXPECT_TRUE(Await([&] { return listener_->stats().in_handshake == 1; }));
  EXPECT_EQ(listener_->stats().dropped_for_room, 0);
}

TEST_F(TcpTransportTest, OlderStrangersMakeRoomForNewcomers) {
  options_.hello_timeout = options_.handshake_timeout = absl::Hours(1);
  options_.max_strangers_per_address = 8;
  Start();
  std::vector<std::unique_ptr<RawPeer>> idle;
  for (int i = 0; i < 8; ++i) idle.push_back(std::make_unique<RawPeer>(listener_->address()));
  ASSERT_TRUE(Await([&] { return listener_->stats().in_handshake == 8; }));
  EXPECT_TRUE(Works());
  EXPECT_TRUE(AwaitClosed(*idle[0]));
  for (size_t i = 1; i < idle.size(); ++i) EXPECT_TRUE(idle[i]->Receive()) << i;
  EXPECT_EQ(listener_->stats().dropped_for_room, 1);
  EXPECT_EQ(listener_->stats().dropped_handshake, 1);
  EXPECT_EQ(listener_->stats().in_handshake, 7);
  for (int i = 0; i < 20; ++i) idle.push_back(std::make_unique<RawPeer>(listener_->address()));
  ASSERT_TRUE(Await([&] { return listener_->stats().dropped_for_room == 20; }));
  EXPECT_EQ(listener_->stats().in_handshake, 8);
  EXPECT_TRUE(Works()) << "a member stays";
  EXPECT_EQ(channel_->stats().connects, 1);
}

// Returns the lowest descriptor that is free.
int LowestFree() { return Socket(dup(STDERR_FILENO)).fd(); }

TEST_F(TcpTransportTest, DescriptorsForFilesAreLeftToThem) {
  options_.hello_timeout = options_.handshake_timeout = absl::Hours(1);
  // The first three quarters are for connections; a peer of this test takes one for each of its two ends.
  options_.max_descriptors = (LowestFree() + 40) / 3 * 4;
  Start();
  ASSERT_TRUE(Works());
  std::vector<std::unique_ptr<RawPeer>> idle;
  for (int i = 0; i < 40; ++i) {
    idle.push_back(std::make_unique<RawPeer>(listener_->address()));
    ASSERT_TRUE(Await([&] { return listener_->stats().in_handshake + listener_->stats().dropped_for_room == i + 1; }));
  }
  EXPECT_GT(listener_->stats().dropped_for_room, 10);
  EXPECT_LT(listener_->stats().in_handshake, 30);
  const std::unique_ptr<Channel> newcomer = transport_->Connect(listener_->address());
  EXPECT_TRUE(Ask(*newcomer, Method::kEcho).ok()) << "it takes the place of an idle one";
  EXPECT_TRUE(Works());
}

TEST_F(TcpTransportTest, MalformedFramesAreDroppedAndCounted) {
  options_.limits = {.max_control_bytes = 1000, .max_bulk_bytes = 5000};
  Start();
  ASSERT_TRUE(Works());
  FrameHeader control;
  control.request_id = 1;
  control.control_bytes = 1001;
  FrameHeader bulk;
  bulk.request_id = 1;
  bulk.bulk_bytes = 5001;
  FrameHeader reply;
  reply.type = FrameType::kReply;
  reply.request_id = 1;
  uint64_t dropped = 0;
  for (const std::string& bytes : {std::string(40, 'x'), Frame(control), Frame(bulk), Frame(reply),
                                   RequestFrame(2, Method::kEcho, "a") + RequestFrame(2, Method::kEcho, "b")}) {
    RawPeer peer(listener_->address());
    PassHandshake(peer);
    peer.Send(bytes);
    EXPECT_TRUE(AwaitClosed(peer));
    ++dropped;
    EXPECT_TRUE(Await([&] { return listener_->stats().dropped_malformed == dropped; })) << dropped;
    EXPECT_TRUE(Works());
  }
  EXPECT_EQ(handler_.Count("connect"), handler_.Count("disconnect") + 1);
  EXPECT_EQ(handler_.Count("prepare 5001"), 0);
  EXPECT_EQ(listener_->stats().dropped_handshake, 0);
}

TEST_F(TcpTransportTest, AMessageThatDoesntGetOnIsDropped) {
  options_.stall_timeout = absl::Milliseconds(200);
  Start();
  ASSERT_TRUE(Works());
  FrameHeader push;
  push.method = Method::kEcho;
  push.request_id = 1;
  push.bulk_bytes = 100;
  RawPeer in_header(listener_->address()), in_bulk(listener_->address()), idle(listener_->address());
  for (RawPeer* peer : {&in_header, &in_bulk, &idle}) PassHandshake(*peer);
  in_header.Send(Frame(push).substr(0, 20));
  in_bulk.Send(Frame(push) + "some");
  EXPECT_TRUE(AwaitClosed(in_header));
  EXPECT_TRUE(AwaitClosed(in_bulk));
  EXPECT_TRUE(Await([&] { return listener_->stats().dropped_malformed == 2; }));
  EXPECT_EQ(handler_.targets, 0);
  EXPECT_TRUE(Works());
  EXPECT_TRUE(idle.Receive()) << "who has begun nothing may be idle for ever";
  EXPECT_EQ(listener_->stats().connections, 2);
}

// Nothing is handled, memory is given back, the next call works.
TEST_F(TcpTransportTest, AConnectionThatBreaksInMidMessage) {
  Start();
  constexpr size_t kBulkBytes = 5000000;
  FrameHeader header;
  header.method = Method::kEcho;
  header.request_id = 1;
  header.control_bytes = 4;
  header.bulk_bytes = kBulkBytes;
  const std::string message = Frame(header, "four") + std::string(kBulkBytes, '\0');
  size_t prepared = 0;
  size_t gone = 0;
  for (const size_t after : {size_t{0}, size_t{3}, size_t{4}, size_t{2000000}, kBulkBytes + 3}) {
    {
      RawPeer peer(listener_->address());
      ASSERT_NO_FATAL_FAILURE(PassHandshake(peer));
      for (size_t sent = 0; sent < kFrameHeaderBytes + after;) {
        sent += peer.SendSome(message.substr(sent, kFrameHeaderBytes + after - sent));
        loop_.RunUntil([] { return false; }, loop_.Now());
      }
      if (after >= 4) {
        EXPECT_TRUE(Await([&] { return handler_.Count("prepare 5000000") == prepared + 1; })) << after;
        ++prepared;
      }
    }
    ++gone;
    EXPECT_TRUE(Await([&] { return handler_.Count("disconnect") == gone; })) << after;
    EXPECT_EQ(handler_.targets, 0) << after;
    EXPECT_TRUE(Works()) << after;
  }
  EXPECT_EQ(handler_.Count("handle 1"), gone) << "only the calls in between";
}

TEST_F(TcpTransportTest, ASlowReaderIsHeldBackAndGetsEverythingInTheEnd) {
  options_.max_queued_replies = 4;
  Start();
  RawPeer slow(listener_->address());
  PassHandshake(slow);
  constexpr size_t kRequests = 200;
  constexpr size_t kBytes = 1 << 20;
  std::string requests;
  for (uint64_t id = 1; id <= kRequests; ++id) requests += RequestFrame(id, Method::kPattern, absl::StrCat(kBytes));
  slow.Send(requests);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Works());
  EXPECT_LT(handler_.Count("handle 6"), kRequests / 2) << "what the kernel doesn't take isn't read either";
  EXPECT_LE(handler_.most_kept_alive, 6);

  const size_t whole = kRequests * (kFrameHeaderBytes + kBytes + std::string("pattern").size());
  EXPECT_TRUE(Await([&] {
    while (slow.received().size() < whole) {
      const size_t before = slow.received().size();
      if (!slow.Receive() || slow.received().size() == before) break;
    }
    return slow.received().size() >= whole;
  }));
  EXPECT_EQ(slow.received().size(), whole);
  EXPECT_LE(handler_.most_kept_alive, 6);
  EXPECT_TRUE(Await([&] { return handler_.kept_alive == 0; }));
}

TEST_F(TcpTransportTest, UnansweredRequestsAreBounded) {
  options_.max_unanswered = 10;
  Start();
  RawPeer peer(listener_->address());
  PassHandshake(peer);
  std::string requests;
  for (uint64_t id = 1; id <= 100; ++id) requests += RequestFrame(id, Method::kDefer, "");
  peer.Send(requests);
  ASSERT_TRUE(Await([&] { return handler_.deferred.size() == 10; }));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Works());
  EXPECT_EQ(handler_.deferred.size(), 10);
  for (size_t i = 0; i < 10; ++i) handler_.deferred[i].Send("");
  EXPECT_TRUE(Await([&] { return handler_.deferred.size() == 20; }));
}

TEST_F(TcpTransportTest, ACancelledRequestIsntAnswered) {
  Start();
  RawPeer peer(listener_->address());
  PassHandshake(peer);
  FrameHeader cancel;
  cancel.type = FrameType::kCancel;
  cancel.request_id = 1;
  peer.Send(RequestFrame(1, Method::kDefer, "") + Frame(cancel) + RequestFrame(2, Method::kDefer, ""));
  ASSERT_TRUE(Await([&] { return handler_.deferred.size() == 2; }));
  handler_.deferred[0].Send("one");
  handler_.deferred[1].Send("two");
  ASSERT_TRUE(Await([&] { return peer.Receive() && peer.received().size() >= kFrameHeaderBytes + 3; }));
  EXPECT_THAT(peer.received(), HasSubstr("two"));
  EXPECT_EQ(peer.received().size(), kFrameHeaderBytes + 3);
}

TEST_F(TcpTransportTest, TooManyConnectionsAreToldSoAndLetInLater) {
  options_.max_connections = 1;
  Start();
  ASSERT_TRUE(Works());
  const std::unique_ptr<Channel> second = transport_->Connect(listener_->address());
  const absl::Status status = Ask(*second, Method::kEcho, "", absl::Milliseconds(300)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("too many connections"));
  channel_ = nullptr;
  EXPECT_TRUE(Ask(*second, Method::kEcho).ok());
}

TEST_F(TcpTransportTest, WithoutATokenOnlyLoopbackIsServed) {
  TcpTransport open(loop_);
  for (const char* address : {"0.0.0.0:0", "[::]:0"}) {
    const absl::Status status = open.Listen(address, handler_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("MUSTER_JOB_TOKEN"));
  }
  EXPECT_TRUE(open.Listen("127.0.0.1:0", handler_).ok());
  EXPECT_TRUE(TcpTransport(loop_, token_).Listen("0.0.0.0:0", handler_).ok());
}

// A job without a token on loopback: its processes find the port's secret by themselves.
class NoTokenTest : public TcpTransportTest {
 protected:
  NoTokenTest() : TcpTransportTest(JobToken{}) {}
};

TEST_F(NoTokenTest, ProcessesOfOneUserFindEachOther) {
  for (const char* address : {"localhost:0", "[::1]:0", "127.0.0.1:0"}) {
    Start(address);
    EXPECT_TRUE(Works()) << listener_->address();
  }
}

// What another user's process can do: it reaches the port, but can't read the file.
TEST_F(NoTokenTest, TheEmptyKeyIsRefused) {
  Start();
  RawPeer peer(listener_->address());
  ClientHandshake handshake({}, RandomNonce());
  peer.Send(handshake.Advance({}).to_send);
  absl::Status refused;
  ASSERT_TRUE(Await([&] {
    if (!peer.Receive()) return true;
    const Handshake::Step step = handshake.Advance(AsBytes(peer.received().data(), peer.received().size()));
    peer.received().erase(0, step.used);
    if (!step.to_send.empty()) peer.Send(step.to_send);
    refused = step.status;
    return step.passed || !step.status.ok();
  }));
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
  EXPECT_TRUE(AwaitClosed(peer));
  EXPECT_TRUE(Await([&] { return listener_->stats().dropped_handshake == 1; }));
  EXPECT_EQ(handler_.Count("connect"), 0);
}

TEST_F(NoTokenTest, ARestartedServerHasAnotherSecretAndIsFoundAgain) {
  Start();
  ASSERT_TRUE(Works());
  const std::string address = listener_->address();
  listener_ = nullptr;
  listener_ = transport_->Listen(address, handler_).value();
  EXPECT_TRUE(Works() || Works()) << "the first may have gone into the old connection";
  EXPECT_EQ(channel_->stats().connects, 2);
}

TEST_F(NoTokenTest, AServerThatHasATokenRefusesAndTheErrorSaysWhatToDo) {
  Start();
  TcpTransport with_token(loop_, {"the token of a job"});
  const auto listener = with_token.Listen("127.0.0.1:0", handler_).value();
  channel_ = transport_->Connect(listener->address());
  const absl::Status status = Ask(*channel_, Method::kEcho).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("same user on the same host"));
  channel_ = with_token.Connect(listener_->address());
  EXPECT_EQ(Ask(*channel_, Method::kEcho).status().code(), absl::StatusCode::kPermissionDenied);
}

// The names that a test gives to addresses. Channels ask for them on another thread.
class PlayedNames {
 public:
  NameLookup lookup() {
    return [this](const TcpAddress& name) { return Find(name); };
  }
  // From now on the name isn't known for `lookups`, and then is that of an address.
  void Set(const std::string& address, int unknown_for = 0) {
    const MutexLock lock(mutex_);
    address_ = address;
    unknown_for_ = unknown_for;
    asked_ = 0;
  }
  int asked() {
    const MutexLock lock(mutex_);
    return asked_;
  }

 private:
  absl::StatusOr<std::vector<Endpoint>> Find(const TcpAddress& name) {
    const MutexLock lock(mutex_);
    if (++asked_ <= unknown_for_) return absl::UnavailableError("the name ps-0.test can't be resolved: unknown");
    return Resolve({.host = address_, .port = name.port}, /*numeric_only=*/true);
  }

  Mutex mutex_;
  std::string address_ ABSL_GUARDED_BY(mutex_);
  int unknown_for_ ABSL_GUARDED_BY(mutex_) = 0, asked_ ABSL_GUARDED_BY(mutex_) = 0;
};

class TcpNamesTest : public TcpTransportTest {
 protected:
  // A channel asks so often within a time; here its pauses are shorter.
  TcpNamesTest() {
    options_.lookup = names_.lookup();
    options_.backoff = {.min = absl::Milliseconds(1), .max = absl::Milliseconds(1)};
  }
  static int TriesWithin(absl::Duration time) {
    Backoff usual(TcpOptions().backoff, 1);
    int tries = 1;
    for (absl::Duration waited = usual.Next(); waited < time; waited += usual.Next()) ++tries;
    return tries;
  }

  PlayedNames names_;
};

// As the pod of a ps that starts 40 s later than its workers, where nobody has asked for it before.
TEST_F(TcpNamesTest, ANameThatComesLaterIsFound) {
  names_.Set("127.0.0.1");
  Start("ps-0.test:0");
  const int unknown_for = TriesWithin(absl::Seconds(40));
  EXPECT_GT(unknown_for, 8);
  names_.Set("127.0.0.1", unknown_for);
  EXPECT_TRUE(Works()) << listener_->address();
  EXPECT_EQ(names_.asked(), unknown_for + 1);
}

// As a pod in the place of one that is gone: it has the name, and an address of its own.
TEST_F(TcpNamesTest, APeerIsFoundAtItsNewAddressAfterARestart) {
  names_.Set("127.0.0.1");
  Start("ps-0.test:0");
  EXPECT_TRUE(Works());
  const std::string address = listener_->address();
  EXPECT_THAT(address, ::testing::StartsWith("ps-0.test:"));
  listener_.reset();
  EXPECT_FALSE(Ask(*channel_, Method::kEcho, "", absl::Milliseconds(20)).ok());
  names_.Set("127.0.0.1");
  Request request;
  request.method = Method::kEcho;
  request.deadline = loop_.Now() + absl::Seconds(20);
  std::optional<absl::StatusOr<Reply>> result;
  channel_->Call(request, [&result](absl::StatusOr<Reply> reply) { result = std::move(reply); });
  EXPECT_TRUE(Await([&] { return names_.asked() >= 3; })) << "the old address refuses, and each attempt asks";
  ScriptedHandler successor;
  names_.Set("127.0.0.2");  // for the listener, too
  const auto moved = transport_->Listen(address, successor);
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_TRUE(Await([&] { return result.has_value(); }));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status(), absl::OkStatus()) << "after " << names_.asked() << " lookups";
  EXPECT_THAT(successor.peers, ::testing::SizeIs(1));
}

TEST_F(TcpTransportTest, NamesAndIPv6) {
  for (const char* address : {"localhost:0", "[::1]:0", "127.0.0.1:0"}) {
    Start(address);
    EXPECT_TRUE(Works()) << listener_->address();
    const std::string host = std::string(address).substr(0, std::string(address).size() - 1);
    EXPECT_THAT(listener_->address(), ::testing::StartsWith(host));
    EXPECT_NE(listener_->address(), address);
  }
  EXPECT_THAT(handler_.peers[1], ::testing::StartsWith("[::1]:"));
  Start("[::]:0");  // serves both families
  const std::string port = listener_->address().substr(listener_->address().rfind(':'));
  channel_ = transport_->Connect("127.0.0.1" + port);
  EXPECT_TRUE(Works());
  EXPECT_THAT(handler_.peers.back(), ::testing::StartsWith("127.0.0.1:")) << "as the client names itself";
  channel_ = transport_->Connect("no-such-host.invalid:2222");
  const absl::Status status = Ask(*channel_, Method::kEcho, "", absl::Seconds(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no-such-host.invalid:2222 could not be reached within 1s: "));
  channel_ = transport_->Connect("2222");
  EXPECT_EQ(Ask(*channel_, Method::kEcho).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::tcp_transport_test
