// Tests the promises of channel.h, listener.h and transport.h on every implementation.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/transport/loopback/loopback_transport.h"
#include "muster/transport/simulated/simulated_transport.h"
#include "muster/transport/tcp/tcp_transport.h"
#include "muster/transport/testing/scripted_handler.h"

namespace muster::transport_contract_test {
namespace {

using ::testing::HasSubstr;
using Method = ScriptedHandler::Method;

// Both ends of a transport on one loop.
class World {
 public:
  virtual ~World() = default;
  virtual EventLoop& loop() = 0;
  virtual std::unique_ptr<Transport> MakeTransport(const JobToken& token, uint16_t protocol_version) = 0;
};

// A world over TCP or through shared memory, which is so small that rings wrap and areas fill up now and then.
class TcpWorld final : public World {
 public:
  explicit TcpWorld(bool shared_memory) : shared_memory_(shared_memory) {}
  EventLoop& loop() override { return loop_; }
  std::unique_ptr<Transport> MakeTransport(const JobToken& token, uint16_t protocol_version) override {
    TcpOptions options;
    options.protocol_version = protocol_version;
    options.max_calls_in_flight = 64;
    options.shared_memory = {
        .enabled = shared_memory_, .ring_bytes = 8 << 10, .area_bytes = 4 << 20, .least_beside = 1 << 10};
    return std::make_unique<TcpTransport>(loop_, token, options);
  }

 private:
  const bool shared_memory_;
  TcpEventLoop loop_;
};

// In a simulated world: over a network that hands everything over at once, or over one that takes its time, there also
// for a process of that world.
class SimulatedKind final : public World {
 public:
  explicit SimulatedKind(std::string kind) : kind_(std::move(kind)) {
    thread_.Start([this] { thread_.loop().RunUntil([] { return false; }, absl::InfiniteFuture()); });
  }
  ~SimulatedKind() override { world_.End(); }
  EventLoop& loop() override { return kind_ == "process" ? thread_.loop() : world_.loop(); }
  std::unique_ptr<Transport> MakeTransport(const JobToken& token, uint16_t protocol_version) override {
    const LoopbackOptions options = {.protocol_version = protocol_version, .max_calls_in_flight = 64};
    if (kind_ == "loopback") return std::make_unique<LoopbackTransport>(loopback_, loop(), token, options);
    if (kind_ == "process") return std::make_unique<SimulatedTransport>(slow_, thread_, nullptr, token, options);
    return std::make_unique<SimulatedTransport>(slow_, loop(), nullptr, token, options);
  }

 private:
  const std::string kind_;
  SimulatedWorld world_;
  SimulatedThread& thread_ = world_.NewProcess("process").NewThread();
  LoopbackNetwork loopback_;
  SimulatedNetwork slow_{world_.loop(), NetworkOptions()};
};

std::unique_ptr<World> MakeWorld(const std::string& kind) {
  if (kind == "tcp" || kind == "shm") return std::make_unique<TcpWorld>(kind == "shm");
  return std::make_unique<SimulatedKind>(kind);
}

class TransportContractTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    transport_ = world_->MakeTransport(token_, kProtocolVersion);
    Listen("127.0.0.1:0");
    channel_ = transport_->Connect(address_);
  }

  void Listen(const std::string& address) {
    absl::StatusOr<std::unique_ptr<Listener>> listener = transport_->Listen(address, handler_);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    address_ = listener_->address();
  }

  EventLoop& loop() { return world_->loop(); }

  // The 20 s only pass if the test fails.
  bool Await(absl::FunctionRef<bool()> done) { return loop().RunUntil(done, loop().Now() + absl::Seconds(20)); }

  absl::StatusOr<Reply> CallAndWait(Channel& channel, Request request) {
    std::optional<absl::StatusOr<Reply>> result;
    channel.Call(request, [&](absl::StatusOr<Reply> reply) { result = std::move(reply); });
    EXPECT_FALSE(result.has_value()) << "called back from inside Call";
    if (!Await([&] { return result.has_value(); })) return absl::InternalError("the test has waited in vain");
    return *std::move(result);
  }

  absl::StatusOr<Reply> Ask(uint16_t method, std::string control = "") {
    Request request;
    request.method = method;
    request.control = std::move(control);
    return CallAndWait(*channel_, std::move(request));
  }

  const JobToken token_{"the token of this job"};
  const std::unique_ptr<World> world_ = MakeWorld(GetParam());
  ScriptedHandler handler_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Listener> listener_;
  std::string address_;
  std::unique_ptr<Channel> channel_;
};

TEST_P(TransportContractTest, ControlGoesThereAndBack) {
  EXPECT_EQ(channel_->peer(), address_);
  absl::StatusOr<Reply> reply = Ask(Method::kEcho, "hello");
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->control, "hello");
  EXPECT_EQ(reply->bulk_bytes, 0);
  EXPECT_THAT(handler_.events, ::testing::ElementsAre("connect", "handle 1"));
  EXPECT_EQ(handler_.last_deadline, absl::InfiniteFuture());
}

TEST_P(TransportContractTest, BulkOfManySizesIsGatheredAndScattered) {
  for (size_t bytes : {0, 1, 2, 39, 40, 41, 4056, 4095, 4096, 4097, 65536, 1000003, 20000000}) {
    const std::vector<std::byte> sent = Pattern(bytes);
    std::vector<std::byte> received(bytes);
    const ByteSpan from(sent);
    const MutableByteSpan to(received);
    Request request;
    request.method = Method::kEcho;
    request.control = std::string(bytes % 5000, 'c');
    request.bulk = {from.first(bytes / 3), {}, from.subspan(bytes / 3)};
    request.into = {to.first(bytes / 2), {}, to.subspan(bytes / 2)};
    absl::StatusOr<Reply> reply = CallAndWait(*channel_, std::move(request));
    ASSERT_TRUE(reply.ok()) << bytes << ": " << reply.status();
    EXPECT_EQ(reply->bulk_bytes, bytes);
    EXPECT_EQ(reply->control.size(), bytes % 5000);
    EXPECT_TRUE(sent == received) << bytes;
    EXPECT_TRUE(sent == Pattern(bytes)) << "the sender's memory was changed";
  }
  EXPECT_EQ(handler_.targets, 0);
  EXPECT_EQ(handler_.Count("connect"), 1);
}

TEST_P(TransportContractTest, AConnectionOnOneHostIsInSharedMemoryUnlessThatIsOff) {
  ASSERT_TRUE(Ask(Method::kEcho).ok());
  const bool shared = GetParam() == "shm";
  EXPECT_EQ(listener_->stats().in_shared_memory.size(), shared ? 1 : 0);
  if (shared) {
    EXPECT_EQ(listener_->stats().in_shared_memory.front(), handler_.connections.front());
  }
  const std::string link = shared ? "shared memory" : GetParam() == "tcp" ? "tcp" : "loopback";
  EXPECT_EQ(channel_->stats().link, link);
}

TEST_P(TransportContractTest, ManySegmentsInOneMessage) {
  const std::vector<std::byte> sent = Pattern(30000);
  std::vector<std::byte> received(30000);
  Request request;
  request.method = Method::kEcho;
  for (size_t i = 0; i < 3000; ++i) request.bulk.push_back(ByteSpan(sent).subspan(10 * i, 10));
  for (size_t i = 0; i < 2000; ++i) request.into.push_back(MutableByteSpan(received).subspan(15 * i, 15));
  ASSERT_TRUE(CallAndWait(*channel_, std::move(request)).ok());
  EXPECT_TRUE(sent == received);
}

TEST_P(TransportContractTest, AShorterReplyFillsTheFirstBytesAndALongerOneIsDataLoss) {
  std::vector<std::byte> into(1000, std::byte{7});
  Request request;
  request.method = Method::kPattern;
  request.control = "600";
  request.into = {MutableByteSpan(into)};
  absl::StatusOr<Reply> reply = CallAndWait(*channel_, request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->bulk_bytes, 600);
  std::vector<std::byte> expected = Pattern(600);
  expected.resize(1000, std::byte{7});
  EXPECT_TRUE(into == expected);

  request.control = "100001";
  reply = CallAndWait(*channel_, request);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr(address_));
  EXPECT_TRUE(into == expected) << "nothing of it may have been written";
  EXPECT_TRUE(Ask(Method::kEcho).ok()) << "the connection goes on";
  EXPECT_EQ(handler_.Count("connect"), 1);
}

TEST_P(TransportContractTest, RepliesComeInTheOrderOfTheAnswers) {
  std::vector<std::string> replies;
  for (int i = 0; i < 3; ++i) {
    Request request;
    request.method = Method::kDefer;
    request.control = std::to_string(i);
    channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { replies.push_back(reply->control); });
  }
  ASSERT_TRUE(Await([&] { return handler_.deferred.size() == 3; }));
  EXPECT_THAT(handler_.controls, ::testing::ElementsAre("0", "1", "2"));
  handler_.deferred[2].Send("third");
  handler_.deferred[0].Send("first");
  handler_.deferred[1].Send("second");
  ASSERT_TRUE(Await([&] { return replies.size() == 3; }));
  EXPECT_THAT(replies, ::testing::ElementsAre("third", "first", "second"));
}

TEST_P(TransportContractTest, ErrorsOfTheHandlerKeepTheirCodeAndNameThePeer) {
  absl::StatusOr<Reply> reply = Ask(Method::kFail);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("not initialised"));
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr(address_));
  EXPECT_EQ(Ask(Method::kDrop).status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(Ask(Method::kEcho).ok());
}

TEST_P(TransportContractTest, BulkThatIsRefusedIsReadAndTheNextRequestWorks) {
  const std::vector<std::byte> bulk(3000000);
  for (uint16_t method : {Method::kRefuseBulk, Method::kWrongSize}) {
    Request request;
    request.method = method;
    request.bulk = {ByteSpan(bulk)};
    EXPECT_EQ(CallAndWait(*channel_, std::move(request)).status().code(),
              method == Method::kRefuseBulk ? absl::StatusCode::kNotFound : absl::StatusCode::kInternal);
  }
  EXPECT_TRUE(Ask(Method::kEcho).ok());
  EXPECT_EQ(handler_.Count("connect"), 1);
  EXPECT_EQ(handler_.targets, 0);
  EXPECT_THAT(handler_.events, ::testing::Not(::testing::Contains("handle 4")));
}

TEST_P(TransportContractTest, ADeadlineEndsTheCallAndItsLateReplyIsDropped) {
  std::vector<std::byte> into(100);
  Request request;
  request.method = Method::kDefer;
  request.into = {MutableByteSpan(into)};
  request.deadline = loop().Now() + absl::Milliseconds(30);
  absl::StatusOr<Reply> reply = CallAndWait(*channel_, std::move(request));
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr(address_));
  if (!handler_.deferred.empty()) {
    EXPECT_LT(handler_.last_deadline, loop().Now() + absl::Seconds(1)) << "the server is told of the deadline";
    const std::vector<std::byte> late = Pattern(100);
    handler_.deferred[0].Send("late", {ByteSpan(late)});
  }
  EXPECT_TRUE(Ask(Method::kEcho).ok());
  EXPECT_TRUE(into == std::vector<std::byte>(100));
}

TEST_P(TransportContractTest, ADeadlineInThePastEndsTheCallFromTheLoop) {
  Request request;
  request.method = Method::kDefer;
  request.deadline = loop().Now() - absl::Seconds(1);
  EXPECT_EQ(CallAndWait(*channel_, std::move(request)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(TransportContractTest, CancelEndsACallWhereverItIs) {
  std::optional<absl::StatusOr<Reply>> result;
  auto note = [&](absl::StatusOr<Reply> reply) { result = std::move(reply); };
  std::vector<std::byte> into(100);
  Request request;
  request.method = Method::kDefer;
  request.into = {MutableByteSpan(into)};

  // Cancels before there is a connection.
  Channel::CallId call = channel_->Call(request, note);
  channel_->Cancel(call);
  EXPECT_FALSE(result.has_value()) << "called back from inside Cancel";
  ASSERT_TRUE(Await([&] { return result.has_value(); }));
  EXPECT_EQ(result->status().code(), absl::StatusCode::kCancelled);

  // Cancels while the call waits for its answer, and once more after it has ended.
  ASSERT_TRUE(Ask(Method::kEcho).ok());
  handler_.deferred.clear();
  result.reset();
  call = channel_->Call(request, note);
  ASSERT_TRUE(Await([&] { return !handler_.deferred.empty(); }));
  channel_->Cancel(call);
  ASSERT_TRUE(Await([&] { return result.has_value(); }));
  EXPECT_EQ(result->status().code(), absl::StatusCode::kCancelled);
  channel_->Cancel(call);
  const std::vector<std::byte> late = Pattern(100);
  handler_.deferred[0].Send("late", {ByteSpan(late)});
  EXPECT_TRUE(Ask(Method::kEcho).ok());
  EXPECT_TRUE(into == std::vector<std::byte>(100));
  EXPECT_EQ(handler_.Count("connect"), 1);
}

TEST_P(TransportContractTest, CancelOfAHugeMessageFreesItsMemoryAtOnce) {
  ASSERT_TRUE(Ask(Method::kEcho).ok());
  std::optional<absl::Status> result;
  {
    auto bulk = std::make_unique<std::vector<std::byte>>(64 << 20);
    Request request;
    request.method = Method::kEcho;
    request.bulk = {ByteSpan(*bulk)};
    request.into = {MutableByteSpan(*bulk)};
    const Channel::CallId call =
        channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { result = reply.status(); });
    channel_->Cancel(call);
    ASSERT_TRUE(Await([&] { return result.has_value(); }));
  }
  EXPECT_EQ(result->code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(Ask(Method::kEcho).ok());
}

TEST_P(TransportContractTest, TheChannelsEndCallsBackWithCancelled) {
  std::vector<absl::StatusCode> ends;
  for (uint16_t method : {Method::kDefer, Method::kEcho}) {
    Request request;
    request.method = method;
    channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { ends.push_back(reply.status().code()); });
  }
  channel_ = nullptr;
  EXPECT_THAT(ends, ::testing::ElementsAre(absl::StatusCode::kCancelled, absl::StatusCode::kCancelled));

  channel_ = transport_->Connect(address_);
  ASSERT_TRUE(Ask(Method::kEcho).ok());
  const size_t before = handler_.Count("disconnect");
  channel_ = nullptr;
  EXPECT_TRUE(Await([&] { return handler_.Count("disconnect") > before; }));
}

TEST_P(TransportContractTest, ACallbackMayDestroyTheChannel) {
  bool called = false;
  Request request;
  request.method = Method::kEcho;
  channel_->Call(request, [&](const absl::StatusOr<Reply>&) {
    channel_ = nullptr;
    called = true;
  });
  EXPECT_TRUE(Await([&] { return called; }));
}

TEST_P(TransportContractTest, AServerThatGoesAwayEndsItsCallsAndIsFoundAgain) {
  std::optional<absl::Status> result;
  Request request;
  request.method = Method::kDefer;
  channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { result = reply.status(); });
  ASSERT_TRUE(Await([&] { return handler_.deferred.size() == 1; }));
  std::vector<Responder> outliving = std::move(handler_.deferred);
  listener_ = nullptr;
  ASSERT_TRUE(Await([&] { return result.has_value(); }));
  EXPECT_EQ(result->code(), absl::StatusCode::kUnavailable) << *result;

  result.reset();
  request.method = Method::kEcho;
  request.deadline = loop().Now() + absl::Seconds(15);
  channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { result = reply.status(); });
  // Lets a few connection attempts be refused first.
  loop().RunUntil([] { return false; }, loop().Now() + absl::Milliseconds(100));
  EXPECT_FALSE(result.has_value());
  Listen(address_);
  ASSERT_TRUE(Await([&] { return result.has_value(); }));
  EXPECT_TRUE(result->ok()) << *result;
  EXPECT_EQ(channel_->stats().connects, 2);
}

TEST_P(TransportContractTest, CallsInFlightEndWithUnavailableWhenTheServerGoes) {
  std::vector<absl::Status> results;
  for (int i = 0; i < 3; ++i) {
    Request request;
    request.method = Method::kDefer;
    channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { results.push_back(reply.status()); });
  }
  ASSERT_TRUE(Await([&] { return handler_.deferred.size() == 3; }));
  std::vector<Responder> outliving = std::move(handler_.deferred);
  listener_ = nullptr;
  ASSERT_TRUE(Await([&] { return results.size() == 3; }));
  for (const absl::Status& status : results) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(address_));
  }
  outliving[0].Send("goes nowhere");
  outliving.pop_back();
}

TEST_P(TransportContractTest, NobodyThereIsNamedAtTheDeadline) {
  listener_ = nullptr;
  Request request;
  request.method = Method::kEcho;
  request.deadline = loop().Now() + absl::Milliseconds(200);
  const absl::Status status = CallAndWait(*channel_, std::move(request)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr(address_ + " could not be reached within "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(": connection refused"));
}

TEST_P(TransportContractTest, AnotherJobIsRefusedOnBothSides) {
  for (const char* secret : {"the token of another job", ""}) {
    const std::unique_ptr<Transport> other = world_->MakeTransport({secret}, kProtocolVersion);
    const std::unique_ptr<Channel> stranger = other->Connect(address_);
    Request request;
    request.method = Method::kEcho;
    const absl::Status status = CallAndWait(*stranger, std::move(request)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(address_));
  }
  EXPECT_TRUE(Await([&] { return listener_->stats().dropped_handshake == 2; }));
  EXPECT_TRUE(Ask(Method::kEcho).ok()) << "others are still served";
  EXPECT_EQ(handler_.Count("connect"), 1);
}

TEST_P(TransportContractTest, AnotherProtocolVersionIsRefusedNamingBoth) {
  const std::unique_ptr<Transport> other = world_->MakeTransport(token_, kProtocolVersion + 41);
  const std::unique_ptr<Channel> stranger = other->Connect(address_);
  Request request;
  request.method = Method::kEcho;
  const absl::Status status = CallAndWait(*stranger, std::move(request)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("version ", kProtocolVersion, " (muster ")));
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("version ", kProtocolVersion + 41, " (muster ")));
  EXPECT_TRUE(Await([&] { return listener_->stats().dropped_handshake == 1; }));
}

TEST_P(TransportContractTest, APortInUseIsNamed) {
  const absl::Status status = transport_->Listen(address_, handler_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("port " + address_.substr(address_.rfind(':') + 1)));
  EXPECT_EQ(transport_->Listen("nonsense", handler_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(TransportContractTest, TooManyCallsAndTooLongOnesAreRefusedHere) {
  size_t refused = 0;
  size_t answered = 0;
  for (int i = 0; i < 70; ++i) {
    Request request;
    request.method = Method::kDefer;
    channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) {
      if (reply.status().code() == absl::StatusCode::kResourceExhausted) ++refused;
      if (reply.ok()) ++answered;
    });
  }
  EXPECT_TRUE(Await([&] { return refused == 6 && handler_.deferred.size() == 64; }));
  for (Responder& responder : handler_.deferred) responder.Send("");
  EXPECT_TRUE(Await([&] { return answered == 64; }));
  EXPECT_TRUE(Ask(Method::kEcho).ok());
  EXPECT_EQ(Ask(Method::kEcho, std::string((16 << 20) + 1, 'x')).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Ask(Method::kEcho, std::string(16 << 20, 'x')).ok());
}

TEST_P(TransportContractTest, BytesAndRequestsAreCounted) {
  const std::vector<std::byte> bulk(100000);
  Request request;
  request.method = Method::kEcho;
  request.bulk = {ByteSpan(bulk)};
  std::vector<std::byte> into(100000);
  request.into = {MutableByteSpan(into)};
  ASSERT_TRUE(CallAndWait(*channel_, std::move(request)).ok());
  const Channel::Stats client = channel_->stats();
  const Listener::Stats server = listener_->stats();
  EXPECT_EQ(client.calls, 1);
  EXPECT_EQ(client.connects, 1);
  EXPECT_EQ(server.connections, 1);
  EXPECT_EQ(server.accepted, 1);
  EXPECT_EQ(server.requests, 1);
  for (uint64_t bytes : {client.bytes_sent, client.bytes_received, server.bytes_sent, server.bytes_received}) {
    EXPECT_GE(bytes, 100000 + 40);
    EXPECT_LE(bytes, 100000 + 400);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TransportContractTest,
                         ::testing::Values("tcp", "shm", "loopback", "simulated", "process"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster::transport_contract_test
