#include "muster/store/server/ps_server.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "muster/store/calls/lease_beat.h"
#include "muster/store/calls/lease_keeper.h"
#include "muster/store/client/checkpoint_calls.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/simulated_store.h"
#include "muster/store/testing/update_way.h"
#include "muster/store/testing/update_way_push.h"
#include "muster/transport/forwarding_channel.h"
#include "muster/transport/loopback/loopback_transport.h"
#include "muster/transport/simulated/fault_script.h"
#include "muster/transport/tcp/tcp_transport.h"
#include "muster/transport/testing/scripted_handler.h"

namespace muster::ps_server_test {
namespace {

using ::testing::HasSubstr;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {4}}};
const JobToken kToken = {"one job"};

std::unique_ptr<PsServer> Start(LeaseOptions lease = {}, TransportChoice transport = TransportChoice::kAuto) {
  auto server = PsServer::Start({.address = "127.0.0.1:0",
                                 .token = kToken,
                                 .store = {.workers = {"worker:0"}, .lease = lease},
                                 .transport = transport});
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

// A worker in the test's thread, while the server serves in another, with a real connection between them.
class PsServerTest : public ::testing::TestWithParam<UpdateWay> {
 protected:
  void Serve(LeaseOptions lease = {}) {
    server_ = Start(lease, GetParam().transport);
    ASSERT_NE(server_, nullptr);
    thread_ = std::thread([this] { outcome_ = server_->Join(); });
  }
  std::unique_ptr<StoreClient> Client(const JobToken& token = kToken) {
    transports_.push_back(std::make_unique<TcpTransport>(loop_, token));
    return ClientOver(*transports_.back());
  }
  std::unique_ptr<StoreClient> ClientOver(Transport& transport) const {
    return std::make_unique<StoreClient>(
        transport, std::vector<std::string>{server_->address()},
        StoreClientOptions{
            .task = "worker:0", .where = "here", .apply = GetParam().apply, .part_bytes = GetParam().part_bytes()});
  }
  absl::Status End() {
    thread_.join();
    return outcome_;
  }

  WorkerModel model_{kVariables, {.learning_rate = 0.5}, 1};
  TcpEventLoop loop_;
  std::vector<std::unique_ptr<TcpTransport>> transports_;
  std::unique_ptr<PsServer> server_;
  std::thread thread_;
  absl::Status outcome_ = absl::UnknownError("still serving");
};

// Pipelining is up to an algorithm.
INSTANTIATE_TEST_SUITE_P(Ways, PsServerTest,
                         ::testing::ValuesIn(Without(kWays, {"SharedMemoryPipelined", "TcpPipelined"})), NameOfWay);

// Breaks real connections, before a request has gone out or its answer has come in, and doubles requests.
class BreakingChannel final : public ForwardingChannel {
 public:
  BreakingChannel(std::unique_ptr<Channel> inner, Transport& transport, FaultScript& script)
      : ForwardingChannel(std::move(inner)), transport_(transport), script_(script) {}

  CallId Call(const Request& request, ReplyCallback done) override {
    const std::optional<Fault> fault = script_.Meet(request.method, peer());
    if (!fault) return inner_->Call(request, std::move(done));
    if (fault->kind == FaultKind::kDuplicateRequest) {
      const CallId first = inner_->Call(request, std::move(done));
      // With memory of its own: the caller takes its memory back after the first answer.
      auto bulk = std::make_shared<std::vector<std::byte>>();
      for (const ByteSpan segment : request.bulk) bulk->insert(bulk->end(), segment.begin(), segment.end());
      auto into = std::make_shared<std::vector<std::byte>>(TotalBytes(request.into));
      Request again = request;
      again.bulk = {ByteSpan(*bulk)};
      again.into = {MutableByteSpan(*into)};
      inner_->Call(again, [bulk, into](const absl::StatusOr<Reply>&) {});
      return first;
    }
    if (fault->kind == FaultKind::kCutRequest) {
      Break(std::move(done));
      return CallId{0};
    }
    return inner_->Call(request, [this, done = std::move(done)](absl::StatusOr<Reply>& reply) mutable {
      if (!reply.ok()) return done(reply);
      Break(std::move(done));
    });
  }

 private:
  void Break(ReplyCallback done) {
    transport_.loop().Post([this, done = std::move(done)]() mutable {
      inner_ = transport_.Connect(peer());
      absl::StatusOr<Reply> broken = absl::UnavailableError("the test has broken the connection");
      done(broken);
    });
  }

  Transport& transport_;
  FaultScript& script_;
};

// Every other message is cut, loses its answer or comes twice, the joins among them; then the ones between.
TEST_P(PsServerTest, OverARealConnectionEveryUpdateIsAppliedOnce) {
  const std::vector<float> gradient = {1, 2, 3, 4};
  constexpr int64_t kSteps = 10;
  for (const FaultKind kind : {FaultKind::kCutRequest, FaultKind::kCutReply, FaultKind::kDuplicateRequest}) {
    for (const uint64_t odd : {0, 1}) {
      SCOPED_TRACE(testing::Message() << "fault " << static_cast<int>(kind) << " from message " << 1 + odd);
      Serve();
      FaultScript script;
      for (uint64_t i = 0; i < 100; ++i) script.Add({.kind = kind, .first = 1 + odd + 2 * i});
      TcpTransport transport(loop_, kToken);
      WrappingTransport faulty(transport, [&](std::unique_ptr<Channel> channel) {
        return std::make_unique<BreakingChannel>(std::move(channel), transport, script);
      });
      auto client = ClientOver(faulty);
      model_.Fill(1);
      const std::vector<float> before = model_.Values<float>(0);
      ASSERT_EQ(JoinToTrain(*client, model_.binding, /*chief=*/true), absl::OkStatus());
      for (int64_t step = 1; step <= kSteps; ++step) {
        const auto push = [&] {
          return PushBy(
              GetParam(), *client, [&](size_t) { return AsBytes(gradient.data(), 4); }, /*publish_buffers=*/true);
        };
        auto pushed = push();
        // A direct worker whose only connection breaks is taken for dead, as a session is told: it joins again.
        for (int again = 0; absl::IsAborted(pushed.status()) && GetParam().direct() && again < 3; ++again) {
          ASSERT_EQ(JoinToTrain(*client, model_.binding, /*chief=*/true), absl::OkStatus());
          pushed = push();
        }
        ASSERT_TRUE(pushed.ok()) << pushed.status();
        EXPECT_EQ(pushed->global_step, step);
      }
      EXPECT_EQ(client->Done(), absl::OkStatus());
      EXPECT_EQ(End(), absl::OkStatus());
      const std::vector<float> after = model_.Values<float>(0);
      float expected[4];
      for (size_t i = 0; i < 4; ++i) {
        expected[i] = before[i];
        for (int64_t step = 0; step < kSteps; ++step) expected[i] -= 0.5f * gradient[i];
        EXPECT_EQ(after[i], expected[i]);
      }
      EXPECT_GE(script.met(), GetParam().direct() ? 2U : static_cast<uint64_t>(kSteps) / 2);
      if (HasFailure()) return;
    }
  }
}

TEST_P(PsServerTest, ServesUntilTrainingHasEnded) {
  Serve();
  auto client = Client();
  ASSERT_EQ(client->Join(true), absl::OkStatus());
  client->Bind(model_.binding);
  model_.Fill(1);
  ASSERT_EQ(client->Initialize(0, 0, nullptr), absl::OkStatus());
  ASSERT_TRUE(client->AwaitReady(absl::InfiniteFuture()).ok());
  const std::vector<float> before = model_.Values<float>(0);
  const std::vector<float> gradient = {1, 2, 3, 4};
  ASSERT_TRUE(PushBy(
                  GetParam(), *client, [&](size_t) { return AsBytes(gradient.data(), 4); }, /*publish_buffers=*/false)
                  .ok());
  const std::vector<float> after = model_.Values<float>(0);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(after[i], before[i] - 0.5f * gradient[i]);
  const auto page = nlohmann::json::parse(client->ps_calls().Status(0).value_or("{}"));
  EXPECT_EQ(page["task"], "ps:0");
  EXPECT_GT(page["bytes_received"], 0) << "the listener's counters are on the page";
  EXPECT_EQ(client->Done(), absl::OkStatus());
  EXPECT_EQ(End(), absl::OkStatus());
}

// A folder that others may write, too: one of them puts a pipe where the announcement is looked for.
TEST_P(PsServerTest, APipeInTheModelDirLeavesThePsAnswering) {
  const ScratchFolder model_dir;
  ASSERT_EQ(mkfifo((model_dir / "model.ckpt.save-a1").c_str(), 0600), 0);
  Serve();
  const auto client = Client();
  ASSERT_EQ(JoinAsChief(*client, model_.binding), absl::OkStatus());
  const absl::Status saved =
      SavePart(*client, 0, model_dir.path(), "a1", "model.ckpt-1.part-00000-of-00001.a1.safetensors", 1).status();
  EXPECT_TRUE(absl::IsNotFound(saved)) << saved;
  EXPECT_TRUE(client->ps_calls().Status(0).ok());
  EXPECT_EQ(client->Done(), absl::OkStatus());
  EXPECT_EQ(End(), absl::OkStatus());
}

TEST_P(PsServerTest, AStrangerIsRefusedAndCounted) {
  Serve();
  const absl::Status status = Client(JobToken{"another job"})->Join(false);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(server_->address()));
  auto client = Client();
  EXPECT_EQ(nlohmann::json::parse(client->ps_calls().Status(0).value_or("{}"))["dropped_handshake"], 1);
  EXPECT_EQ(client->Shutdown("enough"), absl::OkStatus());
  EXPECT_EQ(End(), absl::OkStatus());
}

TEST_P(PsServerTest, GivesUpWhenEveryoneHasLeft) {
  Serve({.lease = absl::Milliseconds(1),
         .disconnect_grace = absl::Milliseconds(1),
         .abandoned_after = absl::Milliseconds(2)});
  auto client = Client();
  EXPECT_EQ(client->Join(true), absl::OkStatus());
  client.reset();
  EXPECT_TRUE(absl::IsUnavailable(End())) << outcome_;
}

// ".invalid" is never a name (RFC 6761).
TEST(PsServer, ANameThatIsUnknownIsAMistakeUnlessItMayComeLater) {
  const std::string address = "ps-0.muster.invalid:2222";
  const absl::Status mistake = PsServer::Start({.address = address, .token = {.secret = "secret"}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(mistake)) << mistake;
  EXPECT_THAT(mistake.message(), HasSubstr("the name ps-0.muster.invalid can't be resolved"));
  const absl::Status late =
      PsServer::Start({.address = address, .name_patience = absl::Milliseconds(1), .token = {.secret = "secret"}})
          .status();
  EXPECT_TRUE(absl::IsUnavailable(late)) << late;
}

TEST(PsServer, APortInUseIsNamed) {
  const auto first = Start();
  const auto second = PsServer::Start({.address = first->address(), .token = kToken});
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(first->address()));
}

// Counts heartbeats, and gives them the answer it was made with.
class HeartbeatCounter final : public RequestHandler {
 public:
  explicit HeartbeatCounter(absl::Status answer) : answer_(std::move(answer)) {}
  void OnConnect(ConnectionId, const std::string&) override {}
  absl::StatusOr<std::unique_ptr<BulkTarget>> PrepareBulk(const IncomingRequest&) override {
    return absl::InvalidArgumentError("no bulk");
  }
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget>, Responder responder) override {
    EXPECT_EQ(request.method, static_cast<uint16_t>(StoreMethod::kHeartbeat));
    HeartbeatRequest message;
    EXPECT_EQ(Decode(request.control, message), absl::OkStatus());
    stamp = message.stamp;
    last = std::move(message);
    ++heartbeats;
    if (silent) return kept.push_back(std::move(responder));
    if (!answer_.ok()) return responder.Fail(answer_);
    responder.Send({});
  }
  void OnDisconnect(ConnectionId) override { ++disconnects; }

  int heartbeats = 0;
  int disconnects = 0;
  bool silent = false;
  std::vector<Responder> kept;  // of heartbeats that came while it was silent
  HeartbeatRequest last;
  Stamp stamp;

 private:
  const absl::Status answer_;
};

TEST(LeaseKeeperTest, BeatsByItselfUntilItIsDestroyed) {
  TcpEventLoop loop;
  TcpTransport transport(loop, kToken);
  HeartbeatCounter first(absl::OkStatus());
  HeartbeatCounter second(absl::OkStatus());
  const auto first_listener = transport.Listen("127.0.0.1:0", first);
  const auto second_listener = transport.Listen("127.0.0.1:0", second);
  ASSERT_TRUE(first_listener.ok() && second_listener.ok());
  const WorkerProgress progress;
  auto keeper = std::make_unique<LeaseKeeper>(
      kToken, std::vector<std::string>{(*first_listener)->address(), (*second_listener)->address()},
      std::vector<Stamp>{{3, 7, 0}, {4, 7, 0}}, progress, absl::Milliseconds(1));
  loop.RunUntil([&] { return first.heartbeats >= 5 && second.heartbeats >= 5; }, absl::InfiniteFuture());
  EXPECT_EQ(first.stamp, (Stamp{3, 7, 0}));
  EXPECT_EQ(second.stamp, (Stamp{4, 7, 0}));
  keeper.reset();
  // A dead process's connections close; so do these.
  loop.RunUntil([&] { return first.disconnects == 1 && second.disconnects == 1; }, absl::InfiniteFuture());
}

TEST(LeaseBeatTest, BeatsWithoutWaitingForAnswersAndSaysWhichHaveComeAndHowTheWorkerGetsOn) {
  SimulatedWorld world;
  EventLoop& loop = world.loop();
  LoopbackNetwork network;
  LoopbackTransport transport(network, loop);
  HeartbeatCounter ps(absl::OkStatus());
  const auto listener = transport.Listen("ps0:2222", ps);
  ASSERT_TRUE(listener.ok());
  WorkerProgress progress;
  const auto pass = [&](absl::Duration time) { loop.RunUntil([] { return false; }, loop.Now() + time); };
  const LeaseBeat beat(transport, {"ps0:2222"}, {{3, 7, 0}}, progress, absl::Seconds(1));
  pass(absl::Milliseconds(4500));
  EXPECT_EQ(ps.last.beat, 5u);
  EXPECT_EQ(ps.last.heard, 4u);
  ps.silent = true;
  progress.OnAnswer(loop.Now());
  const WorkerProgress::Busy busy(progress, "evaluating");
  pass(absl::Seconds(5));
  EXPECT_EQ(ps.last.beat, 10u);
  EXPECT_EQ(ps.last.heard, 5u);
  EXPECT_EQ(ps.last.steps, 1u);
  EXPECT_EQ(ps.last.busy, "evaluating");
  ps.silent = false;
  ps.kept[2].Send({});
  pass(absl::Seconds(1));
  EXPECT_EQ(ps.last.heard, 8u);
  pass(absl::Seconds(1));
  EXPECT_EQ(ps.last.heard, 11u);
  for (const size_t late : {0, 1, 3, 4}) ps.kept[late].Send({});
}

TEST(LeaseBeatTest, EndsWhenAnotherProcessHasTheRowAndGoesOnWithTheOthers) {
  SimulatedWorld world;
  EventLoop& loop = world.loop();
  LoopbackNetwork network;
  LoopbackTransport transport(network, loop);
  HeartbeatCounter replaced(absl::FailedPreconditionError("replaced by a newer process"));
  HeartbeatCounter other(absl::AbortedError("restarted without its model"));
  const auto replaced_listener = transport.Listen("ps0:2222", replaced);
  const auto other_listener = transport.Listen("ps1:2222", other);
  ASSERT_TRUE(replaced_listener.ok() && other_listener.ok());
  const WorkerProgress progress;
  const LeaseBeat beat(transport, {"ps0:2222", "ps1:2222"}, {{3, 7, 0}, {4, 7, 0}}, progress, absl::Seconds(1));
  loop.RunUntil([] { return false; }, loop.Now() + absl::Seconds(20));
  EXPECT_EQ(replaced.heartbeats, 1);
  EXPECT_GE(other.heartbeats, 19);
}

}  // namespace
}  // namespace muster::ps_server_test
