// Tests what only shared memory has: the way into it, strangers and liars on that way, bulk beside the stream, and
// whatever a peer may write there. transport_contract_test.cc tests the contract that all transports share.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/net/abstract_address.h"
#include "muster/base/net/descriptor_passing.h"
#include "muster/base/testing/no_free_descriptors.h"
#include "muster/transport/io/shared_memory.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/io/tcp_address.h"
#include "muster/transport/little_endian.h"
#include "muster/transport/shm/shm_acceptor.h"
#include "muster/transport/shm/shm_connector.h"
#include "muster/transport/shm/shm_hello.h"
#include "muster/transport/shm/shm_stream.h"
#include "muster/transport/tcp/tcp_transport.h"
#include "muster/transport/testing/scripted_handler.h"

namespace muster::shm_transport_test {
namespace {

using ::testing::HasSubstr;
using Method = ScriptedHandler::Method;
using Attached = absl::StatusOr<std::unique_ptr<ByteStream>>;

constexpr SharedMemoryOptions kSmall{.ring_bytes = 4096, .area_bytes = 1 << 20, .least_beside = 1000};

class ShmTest : public ::testing::Test {
 protected:
  bool Await(absl::FunctionRef<bool()> done) { return loop_.RunUntil(done, loop_.Now() + absl::Seconds(20)); }

  Attached Attach(const ShmAddress& address, absl::Duration patience = absl::Seconds(20)) {
    std::optional<Attached> result;
    ShmConnector connector(loop_, address, kSmall, patience, [&](Attached stream) { result = std::move(stream); });
    EXPECT_FALSE(result.has_value()) << "called back from inside";
    if (!Await([&] { return result.has_value(); })) return absl::InternalError("the test has waited in vain");
    return *std::move(result);
  }

  // Connects a client by hand.
  static Socket Connected(const ShmAcceptor& port) {
    const AbstractAddress address(port.name());
    Socket client(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
    EXPECT_EQ(connect(client.fd(), address.get(), address.length), 0);
    return client;
  }

  TcpEventLoop loop_;
};

class ShmAcceptorTest : public ShmTest {
 protected:
  ShmAddress Expect() {
    return {port_->Expect([this](std::unique_ptr<ByteStream> stream) { moved_ = std::move(stream); }), port_->name()};
  }
  // Connects a client by hand and shows its nonce.
  Socket ConnectedWith(const HandshakeNonce& nonce) const {
    Socket client = Connected(*port_);
    ShmHello hello;
    hello.nonce = nonce;
    EXPECT_EQ(send(client.fd(), &hello, sizeof hello, 0), static_cast<ssize_t>(sizeof hello));
    return client;
  }

  const std::unique_ptr<ShmAcceptor> port_ = *ShmAcceptor::Open(loop_, kSmall, absl::Seconds(20));
  std::unique_ptr<ByteStream> moved_;
};

TEST_F(ShmAcceptorTest, WhoBringsTheNonceGetsTheMemory) {
  const Attached attached = Attach(Expect());
  ASSERT_TRUE(attached.ok()) << attached.status();
  EXPECT_TRUE(Await([&] { return moved_ != nullptr; }));
  char text[] = "hello", got[5] = {};
  const iovec give{text, 5}, take{got, 5};
  EXPECT_EQ((*attached)->Send(&give, 1, false), 5);
  EXPECT_EQ(moved_->Receive(&take, 1), 5);
  EXPECT_EQ(std::string(got, 5), "hello");
  EXPECT_EQ(moved_->Receive(&take, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(ShmAcceptorTest, ANonceIsGoodForOneClient) {
  const ShmAddress address = Expect();
  ASSERT_TRUE(Attach(address).ok());
  ASSERT_TRUE(Await([&] { return moved_ != nullptr; }));
  EXPECT_EQ(Attach(address).status().code(), absl::StatusCode::kUnavailable);
}

// A client has received the memory and hasn't confirmed it yet.
TEST_F(ShmAcceptorTest, ANonceIsGoodForOneClientAlsoBeforeItHasConfirmed) {
  const ShmAddress address = Expect();
  const Socket first = ConnectedWith(address.nonce);
  Socket memory;
  ASSERT_TRUE(Await([&] {
    memory = Socket(ReceiveDescriptor(first.fd()));
    return memory.valid();
  }));
  EXPECT_EQ(Attach(address).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(moved_, nullptr);
  ASSERT_EQ(send(first.fd(), &kShmReady, 1, 0), 1);
  EXPECT_TRUE(Await([&] { return moved_ != nullptr; })) << "the other client has changed nothing for the first";
}

// The client has stayed on TCP after all.
TEST_F(ShmAcceptorTest, ANonceCanBeForgottenWhileAClientAttaches) {
  const ShmAddress address = Expect();
  const Socket client = ConnectedWith(address.nonce);
  char byte = 0;
  ASSERT_TRUE(Await([&] { return recv(client.fd(), &byte, 1, 0) == 1; }));
  port_->Forget(address.nonce);
  ASSERT_EQ(send(client.fd(), &kShmReady, 1, 0), 1);
  EXPECT_TRUE(Await([&] { return recv(client.fd(), &byte, 1, 0) == 0; }));
  EXPECT_EQ(moved_, nullptr);
}

TEST_F(ShmAcceptorTest, AnotherNonceGetsNothing) {
  ShmAddress address = Expect();
  address.nonce[31] ^= std::byte{1};
  EXPECT_EQ(Attach(address).status().code(), absl::StatusCode::kUnavailable);
  address = Expect();
  port_->Forget(address.nonce);
  EXPECT_EQ(Attach(address).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(moved_, nullptr);
}

TEST_F(ShmAcceptorTest, AStrangerIsSentAwayAndOthersAreServed) {
  for (const std::string& hello : {std::string("x"), std::string(40, 'x'), std::string(100, '\0')}) {
    const Socket stranger = Connected(*port_);
    ASSERT_EQ(send(stranger.fd(), hello.data(), hello.size(), 0), static_cast<ssize_t>(hello.size()));
    char byte = 0;
    EXPECT_TRUE(Await([&] { return recv(stranger.fd(), &byte, 1, 0) == 0; }));
  }
  EXPECT_TRUE(Attach(Expect()).ok());
}

TEST_F(ShmAcceptorTest, WhoTakesTooLongIsSentAway) {
  const auto impatient = *ShmAcceptor::Open(loop_, kSmall, absl::Milliseconds(20));
  const Socket stranger = Connected(*impatient);
  char byte = 0;
  EXPECT_TRUE(Await([&] { return recv(stranger.fd(), &byte, 1, 0) == 0; }));
}

TEST_F(ShmAcceptorTest, WithoutFreeDescriptorsClientsWaitAndTheLoopDoesNotTurnWithoutEnd) {
  const Socket stranger = Connected(*port_);
  {
    // UBSan checks an object's type by means of a pipe, once.
    auto& loop = loop_;
    const absl::Time until = loop.Now() + absl::Milliseconds(50);
    const NoFreeDescriptors none;
    int handlers = 0;
    EXPECT_FALSE(loop.RunUntil([&] { return ++handlers == 100; }, until)) << "it asks again at once";
  }
  EXPECT_TRUE(Attach(Expect()).ok());
}

TEST_F(ShmAcceptorTest, NobodyThereIsAnotherHost) {
  ShmAddress address = Expect();
  address.socket = "muster-shm-nobody-has-this-name";
  const absl::Status status = Attach(address).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not on this host"));
}

// A server that says and passes whatever the test likes.
class LyingServerTest : public ShmTest {
 protected:
  LyingServerTest() {
    const AbstractAddress address(address_.socket);
    EXPECT_EQ(bind(listening_.fd(), address.get(), address.length), 0);
    EXPECT_EQ(listen(listening_.fd(), 1), 0);
  }

  // Returns what a client makes of the descriptor that it receives. `fd` -1: it receives none.
  Attached AttachTo(int fd, absl::Duration patience = absl::Seconds(20)) {
    std::optional<Attached> result;
    ShmConnector connector(loop_, address_, kSmall, patience, [&](Attached stream) { result = std::move(stream); });
    const Socket client(accept(listening_.fd(), nullptr, nullptr));
    if (fd >= 0) {
      EXPECT_TRUE(SendDescriptor(client.fd(), fd));
    }
    EXPECT_TRUE(Await([&] { return result.has_value(); }));
    return *std::move(result);
  }

  const ShmAddress address_{RandomNonce(), "muster-shm-test-" + std::to_string(getpid())};
  const Socket listening_{socket(AF_UNIX, SOCK_SEQPACKET, 0)};
};

TEST_F(LyingServerTest, TheRightMemoryIsTaken) {
  const SharedMemory::Made made = *SharedMemory::Make(address_.nonce, kSmall);
  EXPECT_TRUE(AttachTo(made.fd.fd()).ok());
}

TEST_F(LyingServerTest, MemoryWithAnotherNonceIsRefused) {
  const SharedMemory::Made made = *SharedMemory::Make(RandomNonce(), kSmall);
  const absl::Status status = AttachTo(made.fd.fd()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

TEST_F(LyingServerTest, WhatIsNoSuchMemoryIsRefused) {
  for (const bool sealed : {false, true}) {
    const Socket fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const SharedMemory::Made made = *SharedMemory::Make(address_.nonce, kSmall);
    std::vector<std::byte> header(4096);
    ASSERT_EQ(pread(made.fd.fd(), header.data(), header.size(), 0), 4096);
    if (sealed) {
      const uint64_t larger = kSmall.area_bytes + 4096;  // larger than the file
      StoreLittleEndian(larger, &header[16]);
    }
    ASSERT_EQ(pwrite(fd.fd(), header.data(), header.size(), 0), 4096);
    ASSERT_EQ(ftruncate(fd.fd(), static_cast<off_t>(4096 + 2 * kSmall.ring_bytes + 2 * kSmall.area_bytes)), 0);
    if (sealed) {
      ASSERT_EQ(fcntl(fd.fd(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    }
    const absl::Status status = AttachTo(fd.fd()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr(sealed ? "sizes differ" : "F_SEAL_SHRINK"));
  }
}

TEST_F(LyingServerTest, SilenceIsGivenUp) {
  EXPECT_EQ(AttachTo(-1, absl::Milliseconds(20)).status().code(), absl::StatusCode::kUnavailable);
}

TEST(ShmAddressTest, LooksAsWritten) {
  ShmAddress address{RandomNonce(), "name"};
  const std::optional<ShmAddress> decoded = ShmAddress::Decode(address.Encode());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->nonce, address.nonce);
  EXPECT_EQ(decoded->socket, "name");
  EXPECT_FALSE(ShmAddress::Decode(""));
  EXPECT_FALSE(ShmAddress::Decode(std::string(32, 'n')));
  EXPECT_FALSE(ShmAddress::Decode(std::string(133, 'n')));
}

// Keeps bulk in place, and answers from reserved memory.
class KeepingHandler final : public RequestHandler {
 public:
  class Target final : public BulkTarget {
   public:
    explicit Target(size_t bytes, bool stays) : memory_(stays ? 0 : bytes), stays_(stays) {
      segments_ = {MutableByteSpan(memory_)};
    }
    const MutableSegments& segments() const override { return segments_; }
    bool BorrowsBulk() const override { return stays_; }
    void ReceiveBorrowed(BorrowedBytes bulk) override { borrowed_ = std::move(bulk); }
    ByteSpan bytes() const { return stays_ ? borrowed_.bytes() : ByteSpan(memory_); }

   private:
    std::vector<std::byte> memory_;
    const bool stays_;
    MutableSegments segments_;
    BorrowedBytes borrowed_;
  };

  void OnConnect(ConnectionId, const std::string&) override {}
  absl::StatusOr<std::unique_ptr<BulkTarget>> PrepareBulk(const IncomingRequest& request) override {
    borrowed += request.in_shared_memory ? 1 : 0;
    return std::make_unique<Target>(request.bulk_bytes, request.in_shared_memory);
  }
  void Handle(IncomingRequest&, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    const ByteSpan bytes = static_cast<Target&>(*bulk).bytes();
    const MutableByteSpan answer = responder.Reserve(bytes.size());
    reserved += answer.empty() ? 0 : 1;
    if (!answer.empty()) std::memcpy(answer.data(), bytes.data(), bytes.size());
    kept.push_back(std::move(bulk));
    responder.Send("", {answer.empty() ? bytes : ByteSpan(answer)});
  }
  void OnDisconnect(ConnectionId) override {}

  int borrowed = 0;
  int reserved = 0;
  std::vector<std::unique_ptr<BulkTarget>> kept;
};

class ShmTransportTest : public ShmTest {
 protected:
  void Start(RequestHandler& handler, const SharedMemoryOptions& server, const SharedMemoryOptions& client) {
    serving_ = std::make_unique<TcpTransport>(loop_, JobToken{}, TcpOptions{.shared_memory = server});
    calling_ = std::make_unique<TcpTransport>(loop_, JobToken{}, TcpOptions{.shared_memory = client});
    listener_ = *serving_->Listen("127.0.0.1:0", handler);
    channel_ = calling_->Connect(listener_->address());
  }

  // Sends bulk and returns what comes back.
  std::vector<std::byte> Echo(const std::vector<std::byte>& bulk) {
    std::vector<std::byte> into(bulk.size());
    Request request;
    request.method = Method::kEcho;
    request.bulk = {ByteSpan(bulk).first(bulk.size() / 3), ByteSpan(bulk).subspan(bulk.size() / 3)};
    request.into = {MutableByteSpan(into)};
    std::optional<absl::Status> result;
    channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { result = reply.status(); });
    EXPECT_TRUE(Await([&] { return result.has_value(); }));
    EXPECT_TRUE(result->ok()) << *result;
    return into;
  }
  size_t InSharedMemory() { return listener_->stats().in_shared_memory.size(); }

  std::unique_ptr<Transport> serving_, calling_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(ShmTransportTest, EitherSideMaySayNo) {
  for (const bool server : {false, true}) {
    ScriptedHandler handler;
    Start(handler, {.enabled = server}, {.enabled = !server});
    EXPECT_TRUE(Echo(Pattern(100000)) == Pattern(100000));
    EXPECT_EQ(InSharedMemory(), 0);
    channel_ = nullptr;
    listener_ = nullptr;
  }
}

// Every copy is kept until the area is full; then bulk goes through the ring, and nobody waits.
TEST_F(ShmTransportTest, BulkStaysWhereItIsUntilTheAreaIsFull) {
  KeepingHandler handler;
  Start(handler, kSmall, kSmall);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Echo(Pattern(100000, i)) == Pattern(100000, i)) << i;
  EXPECT_EQ(InSharedMemory(), 1);
  EXPECT_EQ(handler.borrowed, 10) << "of 100,000 bytes in an area of a mebibyte";
  EXPECT_EQ(handler.reserved, 20) << "answers are fetched at once";
  for (int i = 0; i < 20; ++i) {
    const ByteSpan kept = static_cast<KeepingHandler::Target&>(*handler.kept[i]).bytes();
    EXPECT_TRUE(std::equal(kept.begin(), kept.end(), Pattern(100000, i).begin())) << i;
  }
  // Released memory is used again.
  handler.kept.clear();
  Echo(Pattern(100000));
  EXPECT_EQ(handler.borrowed, 11);
  EXPECT_TRUE(Echo(Pattern(3000000)) == Pattern(3000000)) << "more than the area holds";
  EXPECT_EQ(handler.borrowed, 11);
  EXPECT_TRUE(Echo(Pattern(999)) == Pattern(999));
  EXPECT_EQ(handler.borrowed, 11) << "too short to be worth a place";
}

TEST_F(ShmTransportTest, WhatIsKeptOutlivesConnectionAndListener) {
  KeepingHandler handler;
  Start(handler, kSmall, kSmall);
  Echo(Pattern(100000));
  channel_ = nullptr;
  listener_ = nullptr;
  const ByteSpan kept = static_cast<KeepingHandler::Target&>(*handler.kept[0]).bytes();
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), Pattern(100000).begin()));
}

const JobToken kToken{"the token of a job"};

// A client that has moved to shared memory by hand, and then writes whatever the test likes.
class RawClientTest : public ShmTest {
 protected:
  void SetUp() override {
    transport_ = std::make_unique<TcpTransport>(loop_, kToken, TcpOptions{.shared_memory = kSmall});
    listener_ = *transport_->Listen("127.0.0.1:0", handler_);
  }

  // Goes through the handshake and gets the shared memory.
  std::unique_ptr<ByteStream> Move() {
    const Endpoint endpoint = Resolve(*ParseTcpAddress(listener_->address()), /*numeric_only=*/true)->front();
    tcp_ = Socket(socket(endpoint.family(), SOCK_STREAM, 0));
    EXPECT_EQ(connect(tcp_.fd(), endpoint.get(), endpoint.length), 0);
    ClientHandshake handshake({.token = kToken, .offers = kOfferSharedMemory}, RandomNonce());
    std::string received;
    for (bool passed = false; !passed;) {
      const Handshake::Step step = handshake.Advance(AsBytes(received.data(), received.size()));
      EXPECT_TRUE(step.status.ok()) << step.status;
      received.erase(0, step.used);
      EXPECT_EQ(send(tcp_.fd(), step.to_send.data(), step.to_send.size(), 0),
                static_cast<ssize_t>(step.to_send.size()));
      passed = step.passed;
      if (!passed && step.used == 0) {
        EXPECT_TRUE(Await([&] { return Receive(received); }));
      }
    }
    EXPECT_TRUE(Await([&] { return received.size() > kFrameHeaderBytes || !Receive(received); }));
    Attached attached = Attach(*ShmAddress::Decode(received.substr(kFrameHeaderBytes)));
    EXPECT_TRUE(attached.ok()) << attached.status();
    return *std::move(attached);
  }
  bool Receive(std::string& received) {
    char bytes[4096];
    const ssize_t n = recv(tcp_.fd(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) received.append(bytes, n);
    return n > 0;
  }

  static void Send(ByteStream& stream, std::string bytes) {
    const iovec give{bytes.data(), bytes.size()};
    stream.Send(&give, 1, false);
  }
  // Makes a request whose header says that its bulk is beside the stream.
  static std::string Beside(uint64_t offset, uint64_t bytes) {
    FrameHeader header;
    header.method = Method::kEcho;
    header.request_id = 1;
    header.bulk_bytes = bytes;
    header.beside = true;
    FrameHeaderBytes encoded;
    EncodeFrameHeader(header, encoded);
    std::string frame(reinterpret_cast<const char*>(encoded.data()), encoded.size());
    frame.resize(frame.size() + kPlaceBytes);
    StoreLittleEndian(offset, reinterpret_cast<std::byte*>(frame.data() + encoded.size()));
    return frame;
  }
  bool AwaitDropped(uint64_t count) {
    return Await([&] { return listener_->stats().dropped_malformed == count && listener_->stats().connections == 0; });
  }

  ScriptedHandler handler_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Listener> listener_;
  Socket tcp_;
};

TEST_F(RawClientTest, BulkThatLiesNowhereEndsTheConnection) {
  uint64_t dropped = 0;
  for (const auto& [offset, bytes] : std::vector<std::pair<uint64_t, uint64_t>>{
           {1, 1000}, {1 << 20, 1000}, {0, 1 << 20}, {~uint64_t{63}, 1000}, {(1 << 20) - 64, 1}}) {
    const std::unique_ptr<ByteStream> stream = Move();
    Send(*stream, Beside(offset, bytes));
    EXPECT_TRUE(AwaitDropped(++dropped)) << offset;
  }
  EXPECT_EQ(handler_.targets, 0);
  EXPECT_EQ(handler_.Count("handle 1"), 0);
}

TEST_F(RawClientTest, GarbageEndsTheConnection) {
  std::minstd_rand random(7);
  for (uint64_t dropped = 1; dropped <= 50; ++dropped) {
    const std::unique_ptr<ByteStream> stream = Move();
    std::string garbage(3000, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    // Sends a valid frame first, now and then.
    Send(*stream, dropped % 2 == 0 ? garbage : Beside(0, 1000) + garbage);
    stream->areas()->outgoing->Reserve(1000).Publish(dropped % 3 == 0 ? ~uint64_t{0} : 1000);
    EXPECT_TRUE(AwaitDropped(dropped));
  }
  EXPECT_EQ(handler_.targets, 0);
}

TEST_F(RawClientTest, AHalfFrameIsNoRequestWhenItsSenderIsGone) {
  std::unique_ptr<ByteStream> stream = Move();
  Send(*stream, Beside(0, 1000));
  stream->areas()->outgoing->Reserve(1000).Publish(999);
  EXPECT_TRUE(Await([&] { return handler_.targets == 1; }));
  stream = nullptr;
  EXPECT_TRUE(Await([&] { return handler_.Count("disconnect") == 1; }));
  EXPECT_EQ(handler_.targets, 0);
  EXPECT_EQ(handler_.Count("handle 1"), 0);
}

// Likewise through the ring, wherever it ends.
TEST_F(RawClientTest, APieceOfAFrameIsNoRequestWhenItsSenderIsGone) {
  FrameHeader header;
  header.method = Method::kEcho;
  header.request_id = 1;
  header.control_bytes = 4;
  header.bulk_bytes = 600;
  FrameHeaderBytes encoded;
  EncodeFrameHeader(header, encoded);
  std::string frame(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  frame += "four" + std::string(600, 'b');
  size_t gone = 0;
  for (const size_t after : {0, 3, 4, 300, 603}) {
    std::unique_ptr<ByteStream> stream = Move();
    Send(*stream, frame.substr(0, encoded.size() + after));
    EXPECT_TRUE(Await([&] { return handler_.targets == (after < 4 ? 0 : 1); })) << after;
    stream = nullptr;
    ++gone;
    EXPECT_TRUE(Await([&] { return handler_.Count("disconnect") == gone; })) << after;
    EXPECT_EQ(handler_.targets, 0) << after;
  }
  EXPECT_EQ(handler_.Count("handle 1"), 0);
  EXPECT_EQ(handler_.Count("prepare 600"), 3);
}

// A connection's server end on its own: what stands in the memory is all that it sees.
class StreamEndTest : public ShmTest, private Poller::Watched {
 protected:
  StreamEndTest() {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    peer_ = Socket(pair[0]);
    stream_ =
        std::make_unique<ShmStream>(loop_.poller(), Socket(pair[1]), memory_, SharedMemory::Side::kServer, kSmall);
    stream_->Start({.read = true}, this);
  }
  void OnReady(bool readable, bool, bool broken) override {
    ++told_;
    broken_ = broken_ || broken;
    if (!readable) return;
    char bytes[64];
    const iovec take{bytes, sizeof bytes};
    last_ = stream_->Receive(&take, 1);
    if (last_ <= 0) stream_->SetInterest({});
  }

  const std::shared_ptr<SharedMemory> memory_ = SharedMemory::Make(RandomNonce(), kSmall)->memory;
  Socket peer_;
  std::unique_ptr<ShmStream> stream_;
  int told_ = 0;
  bool broken_ = false;
  ssize_t last_ = -2;
};

TEST_F(StreamEndTest, WhatWasWrittenBeforeTheEndIsRead) {
  RingWriter writer(memory_->ring_to(SharedMemory::Side::kServer));
  std::string text(100, 'x');
  const iovec give{text.data(), text.size()};
  ASSERT_EQ(writer.Write(&give, 1), 100);
  peer_.Close();
  EXPECT_TRUE(Await([&] { return last_ == 0; }));
  EXPECT_EQ(told_, 3) << "64 bytes, 36 bytes, the end";
}

TEST_F(StreamEndTest, TheEndIsToldToOneWhoDoesNotRead) {
  stream_->SetInterest({});
  peer_.Close();
  EXPECT_TRUE(Await([&] { return broken_; }));
}

TEST_F(StreamEndTest, CountsThatCantBeAreAnError) {
  memory_->ring_to(SharedMemory::Side::kServer).written->store(5000);
  EXPECT_TRUE(Await([&] { return last_ == -1; }));
  memory_->ring_to(SharedMemory::Side::kClient).read->store(1);
  char byte = 0;
  const iovec give{&byte, 1};
  EXPECT_EQ(stream_->Send(&give, 1, false), -1);
  EXPECT_EQ(errno, EBADMSG);
}

TEST_F(StreamEndTest, AnythingButAWakeIsTheEnd) {
  ASSERT_EQ(send(peer_.fd(), "\3", 1, 0), 1);
  ASSERT_EQ(send(peer_.fd(), "\3\3", 2, 0), 2);
  EXPECT_TRUE(Await([&] { return last_ == 0; }));
}

TEST_F(StreamEndTest, OnlyOneWhoSleepsIsWoken) {
  char byte = 7;
  const iovec give{&byte, 1};
  EXPECT_EQ(stream_->Send(&give, 1, false), 1);
  char got = 0;
  EXPECT_EQ(recv(peer_.fd(), &got, 1, 0), -1) << "the other side is awake";
  memory_->sleep(SharedMemory::Side::kClient).store(1);
  EXPECT_EQ(stream_->Send(&give, 1, false), 1);
  EXPECT_EQ(recv(peer_.fd(), &got, 1, 0), 1);
  EXPECT_EQ(got, 3);
  EXPECT_EQ(stream_->Send(&give, 1, false), 1);
  EXPECT_EQ(recv(peer_.fd(), &got, 1, 0), -1) << "once is enough";
}

}  // namespace
}  // namespace muster::shm_transport_test
