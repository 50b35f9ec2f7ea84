// Workers that make synchronous rounds in one arena, without help of a ps, are killed with SIGKILL at every point of a
// round, including recovery, hundreds of times. What a round adds and counts depends on its contributors and its
// number. In the end every element must be what the counted minibatches give, and each deliberate error must be
// noticed.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "muster/store/arena/count_lock.h"
#include "muster/store/arena/shared_memory_order.h"
#include "muster/store/direct/divided_round.h"
#include "tests/process/testing/killed_processes.h"
#include "tests/process/testing/left_behind.h"

namespace muster::divided_kill_test {
namespace {

constexpr int kWorkers = 3;
constexpr uint64_t kSeed = 20240601;
constexpr int kPlantedDeaths = 600;
// Any two or three of them have different sums, so a round's count shows its contributors.
constexpr std::array<uint32_t, kWorkers> kWeights = {1, 10, 100};

// Shared by the workers and the test, besides the arena.
struct Shared {
  KillLog log;
  std::array<std::atomic<uint64_t>, kWorkers> lives;
};

StoreModel TestModel(uint32_t needed) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {5 * kStripeElements + 100}},
                                               {.name = "b", .dtype = DType::kFloat64, .shape = {5000}},
                                               {.name = "v", .shape = {kUndoBlockElements + 1}}};
  StoreModel model = ModelOfPs(variables, *PlaceVariables(variables, 1, Placement::kRoundRobin, {}),
                               RuleSpec{.kind = RuleKind::kSgd, .learning_rate = 1}, 0);
  model.gate = {GateKind::kSynchronous, needed, kWorkers, false};
  return model;
}

// Differs from round to round, so an older gradient in a newer round is noticed.
uint32_t Minibatches(int worker, uint64_t round) { return kWeights[worker] * static_cast<uint32_t>(1 + round % 3); }

// One life of a worker: attaches, recovers, then makes rounds until it is killed or stopped.
void Work(int fd, int worker, uint32_t needed, Shared& shared, int one_in, std::optional<PlantedBug> bug) {
  const uint64_t life = ++shared.lives[worker];
  KillingProbe probe(shared.log, kSeed + life * 1009 + worker, one_in, bug);
  auto arena = *Arena::Attach(*ArenaMemory::Adopt(fd), kWorkers, &probe);
  arena->RecoverWriter(worker);
  uint64_t sequence = arena->HighestSequences()[worker];
  while (!shared.log.stop) {
    const uint64_t token = Observe(arena->header().gate.round);
    const uint32_t minibatches = Minibatches(worker, token);
    DividedRound round({{arena.get(), worker}}, {++sequence, 1, token, minibatches});
    std::vector<std::byte> gradient;
    const auto bytes = [&](int, int slice) -> ByteSpan {
      // Its mean over `needed` adds to every element what the round counts.
      gradient = EvenGradient(*arena, slice, -static_cast<double>(needed) * minibatches);
      return gradient;
    };
    const auto scale = [](int, int) { return 1.0; };
    for (uint32_t rings = round.rings(); !round.Advance({bytes, scale}) && !shared.log.stop; rings = round.rings())
      round.Wait(rings, absl::Milliseconds(5));
  }
}

// Instances differ by how many of the workers make a round.
class DividedKillTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  void MakeArena(uint32_t needed) {
    needed_ = needed;
    memory_ = *ArenaMemory::Create();
    arena_ = *Arena::Create(TestModel(needed), kWorkers, *ArenaMemory::Adopt(memory_->fd()));
    arena_->Load({.generation = 1, .values = std::vector<std::byte>(arena_->layout().value_bytes())});
    ArenaRounds(*arena_, true).SetNeeded(needed, false);
  }

  // Restarts workers until `kills` have died. Returns how many did; -1 if they got stuck.
  int RunUntilKilled(int kills, int one_in, std::optional<PlantedBug> bug = std::nullopt) {
    return muster::RunUntilKilled(kWorkers, kills, absl::Seconds(bug ? 5 : 30), shared_->log,
                                  [&](int worker) { Work(memory_->fd(), worker, needed_, *shared_, one_in, bug); });
  }

  // Returns how many elements, step counters and counts differ from what the rounds give.
  int CountWrong() {
    ArenaRounds(*arena_, true).Fire();  // a round that was cut short at the end
    { const Arena::CountLock finishes_what_was_begun(*arena_); }
    for (int worker = 0; worker < kWorkers; ++worker) arena_->RecoverWriter(worker);
    const ArenaCounters& counters = arena_->header().counters;
    int wrong = counters.updates != arena_->header().gate.round;
    wrong += counters.global_step != static_cast<int64_t>(counters.updates);
    if (needed_ == kWorkers) {
      // Every worker is in every round once.
      int64_t expected = 0;
      for (uint64_t round = 0; round < counters.updates; ++round)
        for (int worker = 0; worker < kWorkers; ++worker) expected += Minibatches(worker, round);
      wrong += counters.minibatches != expected;
    }
    for (const uint64_t t : arena_->ReadSteps()) wrong += t != counters.updates;
    for (size_t slice = 0; slice < arena_->layout().slices().size(); ++slice) {
      const ArenaLayout::Slice& layout = arena_->layout().slices()[slice];
      std::vector<std::byte> bytes(layout.bytes);
      arena_->Read(static_cast<int>(slice), bytes);
      const std::vector<std::byte> expected =
          EvenGradient(*arena_, static_cast<int>(slice), static_cast<double>(counters.minibatches));
      for (int64_t i = 0; i < layout.elements; ++i)
        wrong += std::memcmp(bytes.data() + i * layout.element_size, expected.data() + i * layout.element_size,
                             layout.element_size) != 0;
    }
    return wrong;
  }

  const LeftBehind left_behind_;
  SharedWithChildren<Shared> shared_;
  uint32_t needed_ = 0;
  std::unique_ptr<ArenaMemory> memory_;
  std::unique_ptr<Arena> arena_;
};

TEST_P(DividedKillTest, ManyDeathsLoseNothingAndCountNobodyTwice) {
  MakeArena(GetParam());
  EXPECT_GE(RunUntilKilled(1000, 300), 1000);
  EXPECT_GT(arena_->header().gate.round, 30u);
  EXPECT_EQ(CountWrong(), 0);
  ExpectDeathsAt(
      {ArenaPoint::kPublishing, ArenaPoint::kPublished, ArenaPoint::kAcknowledging, ArenaPoint::kJournalled,
       ArenaPoint::kCounted, ArenaPoint::kFiring, ArenaPoint::kFired, ArenaPoint::kLocked, ArenaPoint::kBlockChanged,
       ArenaPoint::kHeaderWritten, ArenaPoint::kCommitted, ArenaPoint::kOwnerDied, ArenaPoint::kRecovered},
      shared_->log);
}

INSTANTIATE_TEST_SUITE_P(Of3, DividedKillTest, ::testing::Values(2, 3));

class DividedPlantedBugTest : public DividedKillTest {};

TEST_P(DividedPlantedBugTest, IsSeen) {
  MakeArena(kWorkers);
  const auto bug = static_cast<PlantedBug>(GetParam());
  const int died = RunUntilKilled(kPlantedDeaths, 300, bug);
  EXPECT_TRUE(died < kPlantedDeaths || CountWrong() > 0) << kPlantedDeaths << " deaths, and nothing is wrong";
}

INSTANTIATE_TEST_SUITE_P(All, DividedPlantedBugTest,
                         ::testing::Values(static_cast<uint32_t>(PlantedBug::kSkipRestore),
                                           static_cast<uint32_t>(PlantedBug::kFireTwice),
                                           static_cast<uint32_t>(PlantedBug::kTrustEveryShare),
                                           static_cast<uint32_t>(PlantedBug::kCountContributorTwice)));

}  // namespace
}  // namespace muster::divided_kill_test
