// Ring two: a cluster in the threads of one process, each task with its own event loop, over loopback and over every
// kind of connection. Chief, workers and parameter servers train to the optimum, workers vanish and come back, and
// everything ends without help. Nothing here depends on speed: every worker trains until what it has pulled is the
// optimum, so the last one to finish leaves it there.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "muster/algo/algorithms/asynchronous.h"
#include "muster/algo/algorithms/pipelined.h"
#include "muster/algo/sources/quadratic_source.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/base/log.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/store/service/store_service.h"
#include "muster/store/testing/update_way.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/session/session.h"
#include "muster/transport/loopback/loopback_transport.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster::training_test {
namespace {

constexpr int kNumPs = 2;
const std::vector<std::string> kTasks = {"chief:0", "worker:0", "worker:1"};
// Round robin puts a part of w on each ps.
const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {40, 5}}, {.name = "b", .shape = {3}}};
constexpr Partitioning kInTwo = {.kind = Partitioning::Kind::kFixed, .shards = 2};
// The processes of this test live as long as their connections, however slow the machine is.
const LeaseOptions kLease = {.lease = absl::InfiniteDuration(),
                             .disconnect_grace = absl::Milliseconds(20),
                             .abandoned_after = absl::InfiniteDuration()};

// How a cluster's updates are sent.
struct Link {
  UpdateWay way;
  bool loopback = false;  // instead of the way's transport
};

class Cluster {
 public:
  explicit Cluster(const Link& link) : link_(link) {
    for (int ps = 0; ps < kNumPs; ++ps) {
      std::promise<std::string> address;
      std::future<std::string> known = address.get_future();
      ps_.emplace_back([this, ps, address = std::move(address)]() mutable { Serve(ps, std::move(address)); });
      addresses_.push_back(known.get());
    }
  }
  ~Cluster() { JoinPs(); }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  std::unique_ptr<Transport> MakeTransport(TcpEventLoop& loop) {
    if (link_.loopback) return std::make_unique<LoopbackTransport>(network_, loop);
    return std::make_unique<TcpTransport>(
        loop, JobToken{}, TcpOptions{.shared_memory = {.enabled = link_.way.transport == TransportChoice::kAuto}});
  }
  const UpdateWay& way() const { return link_.way; }
  const std::vector<std::string>& addresses() const { return addresses_; }
  void JoinPs() {
    for (std::thread& ps : ps_)
      if (ps.joinable()) ps.join();
  }

  // State of the ps when they had finished.
  std::vector<uint64_t> versions = std::vector<uint64_t>(kNumPs);
  int64_t global_step = 0;
  std::vector<float> farthest = std::vector<float>(kNumPs, 1e9f);  // the element furthest from the optimum
  MemoryFileSystem files;

 private:
  void Serve(int ps, std::promise<std::string> address) {
    TcpEventLoop loop;
    const auto transport = MakeTransport(loop);
    const auto port = way().direct() ? *ArenaListener::Open() : nullptr;
    StoreService service(loop, {.task = "ps:" + std::to_string(ps),
                                .lead = ps == 0,
                                .workers = kTasks,
                                .lease = kLease,
                                .files = &files,
                                .background = [](absl::AnyInvocable<void()> task) { task(); },
                                .port = port.get()});
    auto listener = transport->Listen("127.0.0.1:0", service);
    address.set_value(listener.ok() ? (*listener)->address() : "");
    if (!listener.ok()) return;
    loop.RunUntil([&] { return service.finished(); }, absl::InfiniteFuture());
    Arena* arena = service.MakeView().arena;
    if (arena == nullptr) return;
    versions[ps] = arena->header().counters.updates;
    if (ps == 0) global_step = arena->header().counters.global_step;
    farthest[ps] = FarthestFromTheOptimum(*arena);
  }
  static float FarthestFromTheOptimum(Arena& arena) {
    float farthest = 0;
    for (size_t i = 0; i < arena.model().slices.size(); ++i) {
      const PlacedSlice& slice = arena.model().slices[i];
      std::vector<float> values(slice.elements);
      arena.Read(static_cast<int>(i), AsMutableBytes(values.data(), values.size()));
      for (size_t j = 0; j < values.size(); ++j)
        farthest = std::max(farthest, std::abs(values[j] - QuadraticSource::Optimum(slice.offset + j)));
    }
    return farthest;
  }

  const Link link_;
  LoopbackNetwork network_;
  std::vector<std::string> addresses_;
  std::vector<std::thread> ps_;
};

// One life of a task; belongs to the thread that makes it.
class Worker {
 public:
  Worker(Cluster& cluster, const std::string& task, uint64_t incarnation)
      : cluster_(cluster),
        transport_(cluster.MakeTransport(loop_)),
        source_(kVariables),
        algorithm_(MakeAlgorithm(cluster.way())),
        client_(std::make_unique<StoreClient>(*transport_, cluster.addresses(),
                                              StoreClientOptions{.task = task,
                                                                 .where = "a thread",
                                                                 .incarnation = incarnation,
                                                                 .apply = cluster.way().apply,
                                                                 .part_bytes = cluster.way().part_bytes()})),
        is_chief_(task == "chief:0") {}

  // Runs a session with these hooks from start to end. Returns the error that ended it.
  absl::Status Train(std::vector<std::shared_ptr<SessionHook>> hooks, const std::string& directory = "") {
    Session session({.client = client_.get(),
                     .algorithm = algorithm_.get(),
                     .loop = &loop_,
                     .files = &cluster_.files,
                     .clock = &RealClock(),
                     .is_chief = is_chief_},
                    {.checkpoint_dir = directory, .save_checkpoint_steps = 50, .log_step_count_steps = 0},
                    std::move(hooks));
    absl::Status status = session.Start();
    while (status.ok() && !session.ShouldStop()) status = session.Run();
    return status.ok() ? session.Close() : status;
  }
  // Runs some steps and is then killed: its channel closes without a message.
  absl::Status TrainAndVanish(int steps) {
    Session session({.client = client_.get(),
                     .algorithm = algorithm_.get(),
                     .loop = &loop_,
                     .files = &cluster_.files,
                     .clock = &RealClock()},
                    {}, {});
    absl::Status status = session.Start();
    for (int i = 0; i < steps && status.ok(); ++i) status = session.Run();
    algorithm_.reset();
    client_.reset();
    return status;
  }

 private:
  std::unique_ptr<Algorithm> MakeAlgorithm(const UpdateWay& way) {
    PlacementResult placement = *PlaceVariables(kVariables, kNumPs, Placement::kRoundRobin, kInTwo);
    const RuleSpec rule = {.learning_rate = 0.1};
    if (way.pipelined()) return std::make_unique<PipelinedAlgorithm>(source_, std::move(placement), rule);
    return std::make_unique<AsynchronousAlgorithm>(source_, std::move(placement), rule);
  }

  Cluster& cluster_;
  TcpEventLoop loop_;
  const std::unique_ptr<Transport> transport_;
  QuadraticSource source_;
  std::unique_ptr<Algorithm> algorithm_;
  std::unique_ptr<StoreClient> client_;
  const bool is_chief_;
};

// Stops when the parameters that the step was computed from are the optimum, and `may_stop`.
class StopAtOptimum final : public SessionHook {
 public:
  explicit StopAtOptimum(std::function<bool()> may_stop = [] { return true; }) : may_stop_(std::move(may_stop)) {}
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (values.loss < 1e-5 && may_stop_()) context.RequestStop();
    return absl::OkStatus();
  }

 private:
  const std::function<bool()> may_stop_;
};

class TrainingTest : public ::testing::TestWithParam<Link> {
 protected:
  // Makes the log exist before the tasks' threads: the thread sanitizer doesn't see that its library makes it safely.
  static void SetUpTestSuite() { SetUpLog("tasks"); }

  void ExpectOptimum() {
    cluster_.JoinPs();
    for (int ps = 0; ps < kNumPs; ++ps) EXPECT_LT(cluster_.farthest[ps], 1e-2) << "on ps " << ps;
    EXPECT_GT(cluster_.global_step, 50);
  }

  Cluster cluster_{GetParam()};
};

TEST_P(TrainingTest, ChiefAndWorkersFindTheOptimumAndEverythingEnds) {
  std::vector<absl::Status> ends(kTasks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kTasks.size(); ++i) {
    threads.emplace_back([&, i] {
      Worker worker(cluster_, kTasks[i], i + 1);
      ends[i] = worker.Train({std::make_shared<StopAtOptimum>()}, i == 0 ? "model" : "");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& end : ends) EXPECT_EQ(end, absl::OkStatus());
  ExpectOptimum();
  // Every update has reached both ps and was counted once.
  EXPECT_EQ(cluster_.versions[0], static_cast<uint64_t>(cluster_.global_step));
  EXPECT_EQ(cluster_.versions[1], static_cast<uint64_t>(cluster_.global_step));
  const auto latest = LatestCheckpoint(cluster_.files, "model");
  ASSERT_TRUE(latest.ok() && latest->has_value()) << latest.status();
  EXPECT_TRUE(CheckpointReader::Open(cluster_.files, **latest).ok());
}

TEST_P(TrainingTest, AWorkerThatVanishesStopsNobody) {
  std::atomic<bool> vanished{false};
  std::vector<absl::Status> ends(kTasks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kTasks.size(); ++i) {
    threads.emplace_back([&, i] {
      Worker worker(cluster_, kTasks[i], i + 1);
      if (i == 2) {
        ends[i] = worker.TrainAndVanish(7);
        vanished = true;
      } else {
        ends[i] = worker.Train({std::make_shared<StopAtOptimum>([&] { return vanished.load(); })});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& end : ends) EXPECT_EQ(end, absl::OkStatus());
  ExpectOptimum();
}

TEST_P(TrainingTest, AWorkerThatVanishedComesBackAsANewLife) {
  std::atomic<bool> back{false};
  std::vector<absl::Status> ends(kTasks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kTasks.size(); ++i) {
    threads.emplace_back([&, i] {
      if (i == 1) {
        Worker first(cluster_, kTasks[i], 100);
        ends[i] = first.TrainAndVanish(7);
      }
      Worker worker(cluster_, kTasks[i], i + 1);
      // No worker finishes before the second life has trained, too.
      const auto may_stop = [&, i] {
        if (i == 1) back = true;
        return back.load();
      };
      ends[i].Update(worker.Train({std::make_shared<StopAtOptimum>(may_stop)}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& end : ends) EXPECT_EQ(end, absl::OkStatus());
  ExpectOptimum();
}

TEST_P(TrainingTest, AShutdownEndsEveryoneInOrder) {
  std::atomic<int> training{0};
  std::vector<absl::Status> ends(kTasks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kTasks.size(); ++i) {
    threads.emplace_back([&, i] {
      Worker worker(cluster_, kTasks[i], i + 1);
      bool counted = false;
      const auto count = [&, counted]() mutable {
        if (!std::exchange(counted, true)) ++training;
        return false;
      };
      ends[i] = worker.Train({std::make_shared<StopAtOptimum>(count)}, i == 0 ? "model" : "");
    });
  }
  TcpEventLoop loop;
  const auto transport = cluster_.MakeTransport(loop);
  StoreClient client(*transport, cluster_.addresses(), {.task = "the command"});
  // Posts nothing and waits for no time: each look is one turn of the loop.
  while (training < 3) loop.RunUntil([&] { return training == 3; }, absl::Now() + absl::Milliseconds(1));
  EXPECT_EQ(client.Shutdown("enough"), absl::OkStatus());
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& end : ends) EXPECT_EQ(end, absl::OkStatus());
  ExpectOptimum();
  const auto latest = LatestCheckpoint(cluster_.files, "model");
  ASSERT_TRUE(latest.ok() && latest->has_value()) << latest.status();
  // The chief saved the state at the end. It includes updates that every ps had and that ps 0 was about to count when
  // the end came: at most one from each of the other workers.
  const auto checkpoint = CheckpointReader::Open(cluster_.files, **latest).value();
  EXPECT_GE(checkpoint->manifest().global_step, cluster_.global_step);
  EXPECT_LE(checkpoint->manifest().global_step, cluster_.global_step + 2);
}

std::vector<Link> Links() {
  std::vector<Link> links = {{.way = {.name = "Loopback"}, .loopback = true}};
  for (const UpdateWay& way : kWays) links.push_back({way});
  return links;
}

INSTANTIATE_TEST_SUITE_P(Ways, TrainingTest, ::testing::ValuesIn(Links()),
                         [](const auto& info) { return info.param.way.name; });

}  // namespace
}  // namespace muster::training_test
