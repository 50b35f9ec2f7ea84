// A worker that is heard but hangs: when the round goes on without it, what keeps it in, and what brings it back.
#include "muster/store/gates/stall_watch.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/base/log.h"
#include "muster/store/arena/arena_rounds.h"
#include "muster/store/calls/lease_beat.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/scripted_worker.h"

namespace muster::stall_watch_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;
using Pending = ScriptedWorker::Pending;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {4}}};

std::string LogOf(const std::function<void()>& act) {
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  act();
  return ::testing::internal::GetCapturedStderr();
}

// Two workers whose heartbeats come whatever happens: LeaseBeat sends them, and says what a test wants.
class StallWatchTest : public ::testing::Test {
 protected:
  struct Heart {
    WorkerProgress progress;
    std::unique_ptr<LeaseBeat> beat;
  };

  void Start(LeaseOptions lease = {}, bool elastic = true, ArenaProbe* probe = nullptr) {
    store_ = std::make_unique<SimulatedStore>(1, std::vector<std::string>{"worker:0", "worker:1"}, lease, probe);
    model_.binding.gate = {GateKind::kSynchronous, 2, 2, elastic};
    for (int i = 0; i < 2; ++i) {
      workers_.push_back(std::make_unique<ScriptedWorker>(*store_, "worker:" + std::to_string(i), model_, i == 0));
      hearts_.push_back(std::make_unique<Heart>());
      hearts_[i]->beat = std::make_unique<LeaseBeat>(store_->client_transport(), store_->addresses(),
                                                     std::vector<Stamp>{workers_[i]->client().MakeStamp(0, 0)},
                                                     hearts_[i]->progress, lease.lease / 4);
    }
  }
  ~StallWatchTest() override { hearts_.clear(); }

  // The worker's steps take `step`, and it has made `steps` of them.
  void Steps(int worker, int steps, absl::Duration step) {
    WorkerProgress& progress = hearts_[worker]->progress;
    absl::Time now = store_->loop.Now();
    for (int i = 0; i < steps; ++i) {
      progress.OnPush(now);
      progress.OnAnswer(now);
      now += step;
    }
  }
  Pending Contribute(int worker, uint64_t round) { return workers_[worker]->Contribute(1, round); }
  void Pass(absl::Duration duration) { store_->Pass(duration); }
  std::string Page() { return StatusJson(store_->service(0).MakeView()); }
  nlohmann::json Status() { return nlohmann::json::parse(Page()); }

  WorkerModel model_{kVariables, RuleSpec{.learning_rate = 1}, 1};
  std::unique_ptr<SimulatedStore> store_;
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
  std::vector<std::unique_ptr<Heart>> hearts_;
};

TEST_F(StallWatchTest, AWorkerThatIsHeardButHangsIsExcludedAndItsNextPushUndoesIt) {
  Start();
  Steps(1, 5, absl::Milliseconds(100));
  const Pending first = Contribute(0, 0);
  Pass(absl::Milliseconds(9800));
  EXPECT_FALSE(first->there) << "it may still come";
  const std::string log = LogOf([&] { Pass(absl::Seconds(2)); });
  ASSERT_TRUE(first->ok());
  EXPECT_EQ(Status()["clients"][1]["state"], "excluded");
  EXPECT_THAT(log, AllOf(HasSubstr("worker:1 is lost: it is heard, but has kept round 0 waiting for 10s (its steps "
                                   "take 100ms); it is back with its next push; rounds go on with 1 of 2\n"),
                         Not(HasSubstr("worker:0 is lost"))));
  const Pending alone = Contribute(0, 1);
  Pass(absl::Milliseconds(10));
  EXPECT_TRUE(alone->ok()) << "nobody waits for it any more";
  Pending late;
  const std::string back = LogOf([&] {
    late = Contribute(1, 0);
    Pass(absl::Seconds(1));
  });
  ASSERT_TRUE(late->ok());
  EXPECT_TRUE(late->reply.dropped) << "its gradient is of a round that is over";
  EXPECT_EQ(late->reply.round, 2u);
  EXPECT_THAT(back, HasSubstr("worker:1 is back; rounds go on with 2 of 2\n"));
  const Pending waits = Contribute(0, 2);
  Pass(absl::Seconds(1));
  EXPECT_FALSE(waits->there) << "it is needed again";
  EXPECT_TRUE((Contribute(1, 2), Pass(absl::Milliseconds(10)), waits->ok()));
}

TEST_F(StallWatchTest, TheLimitIsFiveOfItsOwnSteps) {
  Start();
  Steps(1, 8, absl::Seconds(4));
  const Pending first = Contribute(0, 0);
  Pass(absl::Seconds(19));
  EXPECT_FALSE(first->there);
  Pass(absl::Seconds(3));
  EXPECT_TRUE(first->ok());
}

TEST_F(StallWatchTest, FirstStepsMayTakeMinutes) {
  Start();
  Steps(1, 1, absl::Milliseconds(100));
  const Pending first = Contribute(0, 0);
  EXPECT_THAT(LogOf([&] { Pass(absl::Minutes(5)); }),
              HasSubstr("round 0 has waited 5s for worker:1 (in its first steps) (1 contributed)\n"));
  EXPECT_FALSE(first->there);
  Steps(1, 1, absl::Milliseconds(100));
  Pass(absl::Seconds(12));
  EXPECT_TRUE(first->ok());
}

TEST_F(StallWatchTest, APartThatTheProgramCallsBusyDoesNotCount) {
  Start();
  Steps(1, 5, absl::Milliseconds(100));
  auto busy = std::make_unique<WorkerProgress::Busy>(hearts_[1]->progress, "evaluating");
  const Pending first = Contribute(0, 0);
  EXPECT_THAT(LogOf([&] { Pass(absl::Minutes(5)); }),
              HasSubstr("round 0 has waited 5s for worker:1 (evaluating) (1 contributed)\n"));
  EXPECT_FALSE(first->there);
  busy.reset();
  Pass(absl::Seconds(9));
  EXPECT_FALSE(first->there) << "its time begins only now";
  Pass(absl::Seconds(3));
  EXPECT_TRUE(first->ok());
}

TEST_F(StallWatchTest, NobodyIsExcludedWithoutALimitNorFromAGateThatIsNotElastic) {
  for (const bool elastic : {true, false}) {
    hearts_.clear();
    workers_.clear();
    Start({.stall_limit = elastic ? absl::ZeroDuration() : absl::Seconds(10)}, elastic);
    Steps(1, 5, absl::Milliseconds(100));
    const Pending first = Contribute(0, 0);
    const std::string log = LogOf([&] { Pass(absl::Minutes(5)); });
    EXPECT_FALSE(first->there);
    EXPECT_THAT(log, elastic
                         ? HasSubstr("round 0 has waited 5s for worker:1 (1 contributed)\n")
                         : HasSubstr("round 0 has waited 5s for worker:1 (1 contributed); the gate isn't elastic, and "
                                     "waits for as long as that takes\n"));
    EXPECT_THAT(Status()["gate"]["waits"].get<std::string>(),
                HasSubstr("round 0 has waited 5m for worker:1 (1 contributed)"));
  }
}

TEST_F(StallWatchTest, ThePsSaysWhoWaitsForWhomEachTimeTwiceAsLate) {
  Start({.stall_limit = absl::Seconds(50)});
  Steps(1, 5, absl::Milliseconds(100));
  Contribute(0, 0);
  const std::string log = LogOf([&] { Pass(absl::Seconds(48)); });
  for (const char* since : {"5s", "10s", "20s", "40s"})
    EXPECT_THAT(log, HasSubstr(absl::StrCat("round 0 has waited ", since,
                                            " for worker:1 (1 contributed); worker:1 is excluded after 50s\n")));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 4);
  EXPECT_THAT(*StatusTable(Page()), HasSubstr("\nround 0 has waited 48s for worker:1 (1 contributed); "));
}

// What it has sent may be unread when the ps goes on.
TEST_F(StallWatchTest, TheTimeInWhichThePsItselfWasStoppedDoesNotCount) {
  ClientTable clients({"worker:0", "worker:1"}, {});
  absl::Time now = absl::FromUnixSeconds(1000);
  for (uint64_t i = 0; i < 2; ++i)
    ASSERT_TRUE(clients.Join({clients.client(static_cast<int>(i)).task, 7}, ConnectionId{i}, now).ok());
  clients.client(1).steps = 5;
  Start({.lease = absl::Hours(1)});
  Arena& arena = *store_->service(0).MakeView().arena;
  StallWatch stalls(clients, nullptr);
  stalls.Attach(arena);
  Contribute(0, 0);
  Pass(absl::Milliseconds(10));
  EXPECT_FALSE(stalls.Recheck(now, false));
  EXPECT_EQ(stalls.NextCheck(), now + absl::Seconds(5));
  now += absl::Seconds(20);
  for (uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(clients.Hear({i, 7, 0}, ConnectionId{i}, now).ok());
  stalls.Forgive(absl::Seconds(20));
  EXPECT_FALSE(stalls.Recheck(now, false));
  EXPECT_TRUE(clients.client(1).excluded.empty());
  EXPECT_FALSE(stalls.Recheck(now + absl::Seconds(1), /*held_back=*/true)) << "for a checkpoint";
  EXPECT_FALSE(stalls.Recheck(now + absl::Seconds(2), false));
  for (uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(clients.Hear({i, 7, 0}, ConnectionId{i}, now + absl::Seconds(11)).ok());
  EXPECT_FALSE(stalls.Recheck(now + absl::Seconds(11), false)) << "nor does the time of a cut";
  EXPECT_TRUE(stalls.Recheck(now + absl::Seconds(12), false));
  EXPECT_FALSE(clients.client(1).excluded.empty());
}

// It has no message for the ps.
TEST_F(StallWatchTest, AWorkerThatAppliesItsOwnUpdatesIsExcludedAndBackToo) {
  Start();
  Steps(1, 5, absl::Milliseconds(100));
  Arena& arena = *store_->service(0).MakeView().arena;
  ArenaRounds rounds(arena, /*lead=*/true);
  const auto contribute = [&](int client, uint64_t sequence, uint64_t round) {
    const ArenaRounds::Contribution mine = {
        .client = client, .sequence = sequence, .generation = 1, .local_step = round, .direct = true};
    const ArenaRounds::Standing standing = rounds.Enter(mine);
    if (standing != ArenaRounds::Standing::kOpen) return standing;
    rounds.BeginGradient(mine);
    rounds.Commit(mine);
    rounds.Fire(client);
    return standing;
  };
  EXPECT_EQ(contribute(0, 1, 0), ArenaRounds::Standing::kOpen);
  Pass(absl::Milliseconds(9500));
  EXPECT_EQ(arena.header().gate.round, 0u);
  Pass(absl::Seconds(2));
  EXPECT_EQ(arena.header().gate.round, 1u);
  EXPECT_EQ(contribute(0, 2, 1), ArenaRounds::Standing::kOpen);
  EXPECT_EQ(arena.header().gate.round, 2u) << "it needs one";
  EXPECT_EQ(contribute(1, 1, 0), ArenaRounds::Standing::kLate);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Status()["clients"][1]["state"], "alive");
  EXPECT_EQ(contribute(0, 3, 2), ArenaRounds::Standing::kOpen);
  EXPECT_EQ(arena.header().gate.round, 2u) << "it needs both";
}

}  // namespace
}  // namespace muster::stall_watch_test
