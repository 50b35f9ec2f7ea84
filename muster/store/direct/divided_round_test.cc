// Rounds of the synchronous gate that workers run themselves, step by step in whatever order a test wants. No death of
// a worker, at any point, changes the result, which is that of the ps's own gate.
#include "muster/store/direct/divided_round.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "muster/base/testing/sanitizer_stride.h"
#include "muster/store/arena/count_lock.h"
#include "muster/store/testing/scripted_death.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::divided_round_test {
namespace {

constexpr int kClients = 3;
const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {40000}},  // three stripes
                                              {.name = "d", .dtype = DType::kFloat64, .shape = {5}},
                                              {.name = "mean", .shape = {3}, .kind = VariableKind::kBuffer},
                                              {.name = "h", .dtype = DType::kBFloat16, .shape = {5000}},
                                              {.name = "unused", .shape = {7}}};
const RuleSpec kPlain = {.kind = RuleKind::kSgd, .learning_rate = 1};

// Returns the bytes of a gradient that is `gradient` everywhere.
std::vector<std::byte> Everywhere(const VariableSpec& variable, size_t bytes, double gradient) {
  std::vector<std::byte> all(bytes);
  const auto fill = [&](auto element) {
    for (size_t at = 0; at < bytes; at += sizeof element) std::memcpy(all.data() + at, &element, sizeof element);
  };
  const auto narrow = static_cast<float>(gradient);
  uint32_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof bits);
  if (variable.dtype == DType::kFloat64) {
    fill(gradient);
  } else if (variable.dtype == DType::kBFloat16) {
    fill(static_cast<uint16_t>(bits >> 16));  // exact for small whole numbers
  } else {
    fill(narrow);
  }
  return all;
}

// One worker's process.
class Worker {
 public:
  Worker(const std::vector<std::shared_ptr<ArenaMemory>>& memories, int client, ArenaProbe* probe) : client_(client) {
    for (const auto& memory : memories)
      arenas_.push_back(*Arena::Attach(*ArenaMemory::Adopt(memory->fd()), kClients, probe));
  }
  // Not in the constructor: a worker that dies here leaves memory behind that is still mapped, as the kernel needs it.
  void Join() {
    for (const auto& arena : arenas_) {
      arena->RecoverWriter(client_);
      sequence_ = std::max(sequence_, arena->HighestSequences()[client_]);
    }
  }
  void Begin(double gradient, uint64_t local_step, uint64_t generation = 1) {
    gradient_ = gradient;
    std::vector<DividedRound::Place> places;
    for (const auto& arena : arenas_) places.push_back({arena.get(), client_});
    round_.emplace(places, DividedRound::Numbers{++sequence_, generation, local_step, 1});
  }
  bool Advance() {
    const auto bytes = [this](int ps, int slice) -> ByteSpan {
      const StoreModel& model = arenas_[ps]->model();
      const VariableSpec& variable = model.variable(model.slices[slice]);
      if (variable.name == "unused") return {};
      scratch_ = Everywhere(variable, model.slices[slice].bytes, gradient_);
      return scratch_;
    };
    return round_->Advance({bytes, [this](int, int) { return scale; }});
  }
  bool Contribute(double gradient, uint64_t local_step, uint64_t generation = 1) {
    Begin(gradient, local_step, generation);
    return Advance();
  }
  const DividedRound& round() const { return *round_; }
  uint64_t token() { return arenas_[0]->header().gate.round; }

  double scale = 1;

 private:
  const int client_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::optional<DividedRound> round_;
  uint64_t sequence_ = 0;
  double gradient_ = 0;
  std::vector<std::byte> scratch_;
};

class DividedRoundTest : public ::testing::Test {
 protected:
  void Start(uint64_t needed, int num_ps = 1, const RuleSpec& rule = kPlain) {
    for (int ps = 0; ps < num_ps; ++ps) {
      StoreModel model = ModelOn(kVariables, rule, num_ps, ps);
      model.gate = {GateKind::kSynchronous, 2, kClients, true};
      memories_.push_back(*ArenaMemory::Create());
      arenas_.push_back(*Arena::Create(model, kClients, *ArenaMemory::Adopt(memories_.back()->fd()), &probe_));
      rounds_.emplace_back(*arenas_.back(), ps == 0);
      Load(ps, 1, 0);
      SetNeeded(needed, ps);
    }
    for (int i = 0; i < kClients; ++i) Restart(i);
  }
  void Load(int ps, uint64_t generation, int64_t global_step) {
    const std::vector<std::byte> zeros(ValueBytes(arenas_[ps]->model()));
    arenas_[ps]->Load({.generation = generation, .global_step = global_step, .values = zeros});
  }
  bool SetNeeded(uint64_t needed, int ps = 0, bool lost = false) { return rounds_[ps].SetNeeded(needed, lost); }
  Worker& worker(int i) { return *workers_[i]; }
  void Restart(int i) {
    workers_.resize(kClients);
    workers_[i] = std::make_unique<Worker>(memories_, i, &probe_);
    workers_[i]->Join();
  }
  ArenaHeader& header(int ps = 0) { return arenas_[ps]->header(); }
  // Returns element `i` of w, which ps 0 has.
  float W(size_t i = 0) {
    std::vector<float> w(40000);
    arenas_[0]->Read(0, AsMutableBytes(w.data(), w.size()));
    for (const float element : w)
      if (i == 0) {
        EXPECT_EQ(element, w[0]);
      }
    return w[i];
  }

  ScriptedDeath probe_;
  std::vector<std::shared_ptr<ArenaMemory>> memories_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<ArenaRounds> rounds_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

TEST_F(DividedRoundTest, FiresWithTheMeanOfTheFirstNAndDropsWhoIsLate) {
  Start(2);
  EXPECT_FALSE(worker(0).Contribute(1, 0)) << "it waits for another";
  EXPECT_EQ(W(), 0.0f);
  EXPECT_TRUE(worker(2).Contribute(5, 0));
  EXPECT_EQ(W(), -3.0f);
  EXPECT_TRUE(worker(0).Advance());
  EXPECT_FALSE(worker(0).round().dropped());
  EXPECT_TRUE(worker(1).Contribute(100, 0));
  EXPECT_TRUE(worker(1).round().dropped());
  EXPECT_EQ(W(), -3.0f);
  EXPECT_EQ(worker(1).token(), 1u);
  EXPECT_FALSE(worker(1).Contribute(2, 1));
  EXPECT_TRUE(worker(0).Contribute(4, 1));
  EXPECT_EQ(W(), -6.0f);
  EXPECT_EQ(header().counters.global_step, 2);
  EXPECT_EQ(header().counters.updates, 2u);
  EXPECT_EQ(header().counters.minibatches, 4);
  EXPECT_EQ(header().gate.dropped, 1u);
  EXPECT_EQ(arenas_[0]->client(1).direct_pushes, 1u);
}

TEST_F(DividedRoundTest, WhoHasPublishedWhenTheRoundFiresIsLate) {
  Start(2);
  worker(0).Contribute(1, 0);
  probe_.KillAt(2, ArenaPoint::kPublishing);  // in the middle of its gradient
  EXPECT_FALSE(Survives([&] { worker(1).Contribute(50, 0); }));
  probe_.Bury();
  EXPECT_TRUE(worker(2).Contribute(3, 0));
  EXPECT_EQ(W(), -2.0f) << "what is published in part is in nobody's mean";
  // If it had only been slow, it would find the round gone.
  EXPECT_TRUE(worker(1).Contribute(50, 0));
  EXPECT_TRUE(worker(1).round().dropped());
  EXPECT_EQ(W(), -2.0f);
}

// Worker 1 has published its whole gradient when the others make the round. True if worker 1 is in no round.
bool DropsWhoPublishedTooLate(ArenaRounds& rounds, Worker& worker0, Worker& worker2) {
  const ArenaRounds::Contribution late = {.client = 1, .sequence = 1, .generation = 1, .direct = true};
  EXPECT_EQ(rounds.Enter(late), ArenaRounds::Standing::kOpen);
  rounds.BeginGradient(late);
  worker0.Contribute(1, 0);
  worker2.Contribute(3, 0);
  return rounds.Commit(late) == ArenaRounds::Standing::kLate;
}

TEST_F(DividedRoundTest, AGradientThatIsPublishedTooLateIsInNoRound) {
  Start(2);
  EXPECT_TRUE(DropsWhoPublishedTooLate(rounds_[0], worker(0), worker(2)));
  EXPECT_EQ(header().gate.contributors, 0u);
  EXPECT_EQ(header().gate.dropped, 1u);
}

TEST_F(DividedRoundTest, OneThatWouldBeIsFound) {
  probe_.Plant(PlantedBug::kContributeLate);
  Start(2);
  EXPECT_FALSE(DropsWhoPublishedTooLate(rounds_[0], worker(0), worker(2)));
}

TEST_F(DividedRoundTest, AScaleIsOfItsContributorAlone) {
  Start(2);
  worker(0).scale = 0.5;
  worker(0).Contribute(4, 0);
  EXPECT_TRUE(worker(1).Contribute(4, 0));
  EXPECT_EQ(W(), -3.0f);
}

TEST_F(DividedRoundTest, AnotherLifeInARoundIsDroppedAndWaitsForIt) {
  Start(2);
  worker(0).Contribute(1, 0);
  Restart(0);
  EXPECT_FALSE(worker(0).Contribute(50, 0));
  EXPECT_EQ(header().gate.contributors, 1u);
  EXPECT_TRUE(worker(1).Contribute(3, 0));
  EXPECT_EQ(W(), -2.0f);
  EXPECT_TRUE(worker(0).Advance());
  EXPECT_TRUE(worker(0).round().dropped());
}

TEST_F(DividedRoundTest, ThePsFiresWhenSomebodyHasLeft) {
  Start(3);
  worker(0).Contribute(1, 0);
  worker(1).Contribute(3, 0);
  EXPECT_FALSE(worker(1).Advance());
  ASSERT_TRUE(SetNeeded(2));
  EXPECT_EQ(W(), 0.0f);
  rounds_[0].Fire();
  EXPECT_EQ(W(), -2.0f);
  EXPECT_TRUE(worker(0).Advance());
  // The worker can also tell the others, which then finish it.
  worker(0).Contribute(4, 1);
  SetNeeded(1);
  EXPECT_TRUE(worker(0).Advance());
  EXPECT_EQ(W(), -6.0f);
}

TEST_F(DividedRoundTest, WithoutAWordOfThePsNothingFires) {
  Start(0);
  for (int i = 0; i < kClients; ++i) EXPECT_FALSE(worker(i).Contribute(1, 0));
  EXPECT_EQ(header().gate.contributors, 3u);
  EXPECT_TRUE(SetNeeded(3));
  for (int i = 0; i < kClients; ++i) EXPECT_TRUE(worker(i).Advance());
}

TEST_F(DividedRoundTest, WhoWaitsHearsOfTheEndAndOfARoundThatIsLost) {
  Start(3);
  worker(0).Contribute(1, 0);
  worker(1).Contribute(1, 0);
  const uint32_t rings = worker(0).round().rings();
  SetNeeded(3, 0, /*lost=*/true);
  EXPECT_NE(worker(0).round().rings(), rings);
  EXPECT_TRUE(worker(0).Advance());
  EXPECT_TRUE(worker(0).round().ended());
  SetNeeded(3);
  EXPECT_FALSE(worker(1).Advance()) << "somebody has come back";
  header().ended = 1;
  EXPECT_TRUE(worker(1).Advance());
  EXPECT_TRUE(worker(1).round().ended());
  EXPECT_TRUE(worker(2).Contribute(1, 0));
  EXPECT_TRUE(worker(2).round().ended());
  EXPECT_EQ(header().gate.contributors, 2u);
}

TEST_F(DividedRoundTest, OtherValuesEndTheRoundWhereverItIs) {
  Start(2);
  worker(0).Contribute(1, 0);
  Load(0, 2, 40);
  EXPECT_TRUE(worker(0).Advance());
  EXPECT_TRUE(worker(0).round().other_values());
  EXPECT_TRUE(worker(1).Contribute(1, 0));
  EXPECT_TRUE(worker(1).round().other_values());
  EXPECT_FALSE(worker(0).Contribute(2, 40, 2));
  EXPECT_TRUE(worker(1).Contribute(6, 40, 2));
  EXPECT_EQ(W(), -4.0f);
  EXPECT_EQ(header().counters.global_step, 41);
}

// Its share was noted under the number of a round that comes again.
TEST_F(DividedRoundTest, AShareOfOlderValuesIsNoShare) {
  Start(2);
  worker(0).Contribute(1, 0);
  worker(1).Contribute(1, 0);
  worker(0).Advance();
  Load(0, 2, 0);
  worker(0).Contribute(1, 0, 2);
  probe_.KillAt(1, ArenaPoint::kFiring);
  ASSERT_FALSE(Survives([&] { worker(1).Contribute(3, 0, 2); }));
  probe_.Bury();
  EXPECT_TRUE(worker(0).Advance());
  EXPECT_EQ(W(), -2.0f);
}

TEST_F(DividedRoundTest, AHeldRoundDoesNotBegin) {
  Start(2);
  rounds_[0].HoldHere();
  worker(0).Contribute(1, 0);
  EXPECT_FALSE(worker(1).Contribute(3, 0));
  EXPECT_FALSE(SetNeeded(2));
  rounds_[0].HoldFrom(1);
  EXPECT_TRUE(SetNeeded(2));
  EXPECT_TRUE(worker(1).Advance());
  worker(0).Contribute(1, 1);
  EXPECT_FALSE(worker(1).Contribute(3, 1));
  rounds_[0].Resume();
  EXPECT_TRUE(SetNeeded(2));
  EXPECT_TRUE(worker(1).Advance());
  EXPECT_EQ(W(), -4.0f);
}

TEST_F(DividedRoundTest, AHoldFinishesTheFiringThatIsUnderWay) {
  Start(2);
  worker(0).Contribute(1, 0);
  probe_.KillAt(2, ArenaPoint::kBlockChanged);
  ASSERT_FALSE(Survives([&] { worker(1).Contribute(3, 0); }));
  probe_.Bury();
  ASSERT_EQ(header().firing, 3u);
  rounds_[0].HoldHere();
  EXPECT_EQ(header().firing, 0u);
  EXPECT_EQ(header().gate.round, 1u);
  EXPECT_EQ(W(), -2.0f);
  EXPECT_EQ(header().rounds.held_from, 2u);
}

// A worker on another host contributes, and the ps adds that to its accumulators.
TEST_F(DividedRoundTest, ContributionsThatComeByMessageAreInTheSameMean) {
  Start(2);
  const ArenaRounds::Contribution message = {.client = 2, .sequence = 9, .generation = 1, .minibatches = 1};
  const auto accumulate = [&] {
    const ArenaPush push = {.client = 2, .sequence = 9, .generation = 1};
    for (const int slice : {0, 1, 3}) {
      const PlacedSlice& placed = arenas_[0]->model().slices[slice];
      ASSERT_TRUE(arenas_[0]->Accumulate(slice, push, Everywhere(kVariables[slice], placed.bytes, 5)));
    }
  };
  ASSERT_EQ(rounds_[0].Enter(message), ArenaRounds::Standing::kOpen);
  accumulate();
  // While the ps adds it, nobody else begins a firing, whoever contributes.
  EXPECT_FALSE(worker(0).Contribute(1, 0));
  EXPECT_FALSE(worker(1).Contribute(3, 0));
  ASSERT_EQ(rounds_[0].Commit(message), ArenaRounds::Standing::kOpen);
  EXPECT_TRUE(worker(0).Advance());
  EXPECT_TRUE(worker(1).Advance());
  EXPECT_EQ(W(), -3.0f);
  EXPECT_EQ(header().counters.minibatches, 3);
}

TEST_F(DividedRoundTest, APsThatIsBehindGoesOnWithWhatItHas) {
  Start(2, 2);
  // Worker 0 reaches only ps 1 and dies; the others have made the round on ps 0 without ps 1.
  const ArenaRounds::Contribution at_1 = {.client = 0, .sequence = 1, .generation = 1, .direct = true};
  ASSERT_EQ(rounds_[1].Enter(at_1), ArenaRounds::Standing::kOpen);
  rounds_[1].BeginGradient(at_1);
  const std::vector<std::byte> gradient = Everywhere(kVariables[1], arenas_[1]->model().slices[0].bytes, 1);
  rounds_[1].PutGradient(0, 0, gradient, 1);
  ASSERT_EQ(rounds_[1].Commit(at_1), ArenaRounds::Standing::kOpen);
  for (const int client : {1, 2}) {
    const ArenaRounds::Contribution at_0 = {.client = client, .sequence = 1, .generation = 1, .direct = true};
    ASSERT_EQ(rounds_[0].Enter(at_0), ArenaRounds::Standing::kOpen);
    rounds_[0].BeginGradient(at_0);
    ASSERT_EQ(rounds_[0].Commit(at_0), ArenaRounds::Standing::kOpen);
  }
  rounds_[0].Fire();
  Restart(1);
  EXPECT_FALSE(worker(1).Contribute(4, 1));
  EXPECT_EQ(header(1).gate.round, 1u) << "nobody comes any more for its round 0";
  Restart(2);
  EXPECT_TRUE(worker(2).Contribute(6, 1));
  EXPECT_TRUE(worker(1).Advance());
  double d = 0;
  std::vector<double> all(5);
  arenas_[1]->Read(0, AsMutableBytes(all.data(), all.size()));
  d = all[0];
  EXPECT_EQ(d, -1.0 - 5.0);
  EXPECT_EQ(header(1).counters.updates, 2u);
}

// The result of a run, for comparison.
struct Outcome {
  std::vector<std::byte> values;
  std::vector<uint64_t> steps;
  int64_t global_step = 0;
  int64_t minibatches = 0;
  uint64_t updates = 0;
  bool operator==(const Outcome&) const = default;
};

// Three workers make three rounds, with gradients by worker and round.
class DividedSurvivalTest : public DividedRoundTest {
 protected:
  static constexpr uint64_t kRounds = 3;
  static double GradientOf(int client, uint64_t round) { return 1 + client * 2 + static_cast<double>(round % 2); }

  Outcome Result() {
    Outcome outcome;
    for (size_t ps = 0; ps < arenas_.size(); ++ps) {
      Arena& arena = *arenas_[ps];
      { const Arena::CountLock finishes_what_was_begun(arena); }
      for (size_t slice = 0; slice < arena.model().slices.size(); ++slice) {
        std::vector<std::byte> bytes(arena.model().slices[slice].bytes);
        arena.Read(static_cast<int>(slice), bytes);
        if (arena.model().variable(arena.model().slices[slice]).kind == VariableKind::kTrainable)
          outcome.values.insert(outcome.values.end(), bytes.begin(), bytes.end());
        for (size_t slot = 0; slot < arena.layout().slices()[slice].slot_offsets.size(); ++slot) {
          std::vector<std::byte> state(arena.layout().slices()[slice].slot_bytes());
          arena.ReadSlot(static_cast<int>(slice), static_cast<int>(slot), state);
          outcome.values.insert(outcome.values.end(), state.begin(), state.end());
        }
      }
      for (size_t i = 0; i < arena.layout().slices().size(); ++i)
        if (arena.layout().slices()[i].accumulator_offset != 0)
          outcome.steps.push_back(arena.ReadSteps()[arena.layout().slices()[i].first_stripe]);
      outcome.updates += arena.header().counters.updates;
    }
    outcome.global_step = header().counters.global_step;
    outcome.minibatches = header().counters.minibatches;
    return outcome;
  }
  // Every worker has its turn until all rounds are made; a dead one comes back at once or (every other death) at its
  // next turn. The death is the `death`-th point of all; the next life dies at its `second`-th (0: never).
  Outcome Run(int num_ps, uint64_t death, uint64_t second) {
    arenas_.clear(), rounds_.clear(), workers_.clear(), memories_.clear();
    Start(kClients, num_ps, {.kind = RuleKind::kAdam, .learning_rate = 0.1});
    probe_.passed = 0;
    probe_.KillAt(death);
    std::vector<bool> begun(kClients);
    int i = 0;
    for (int turns = 0; !Over() && turns < 200; ++turns) {
      const bool survived = Survives([&] {
        if (workers_[i] == nullptr) Restart(i);
        if (!begun[i]) worker(i).Begin(GradientOf(i, worker(i).token()), worker(i).token());
        begun[i] = !worker(i).Advance();
      });
      if (survived) {
        i = (i + 1) % kClients;
        continue;
      }
      workers_[i].reset();
      begun[i] = false;
      if (death % 2 == 0) i = (i + 1) % kClients;
      probe_.KillAt(std::exchange(second, 0));
    }
    points_ = probe_.passed;
    probe_.KillAt(0);
    return Result();
  }
  bool Over() {
    return std::all_of(arenas_.begin(), arenas_.end(),
                       [](const auto& arena) { return arena->header().gate.round >= kRounds; });
  }
  // Makes the same rounds through the ps's own gate.
  Outcome ByThePs() {
    arenas_.clear(), rounds_.clear(), workers_.clear(), memories_.clear();
    Start(kClients, 1, {.kind = RuleKind::kAdam, .learning_rate = 0.1});
    for (uint64_t round = 0; round < kRounds; ++round) {
      for (int client = 0; client < kClients; ++client) {
        const ArenaRounds::Contribution message = {
            .client = client, .sequence = round + 1, .generation = 1, .local_step = round, .minibatches = 1};
        EXPECT_EQ(rounds_[0].Enter(message), ArenaRounds::Standing::kOpen);
        for (const int slice : {0, 1, 3})
          arenas_[0]->Accumulate(
              slice, {.client = client, .sequence = round + 1, .generation = 1},
              Everywhere(kVariables[slice], arenas_[0]->model().slices[slice].bytes, GradientOf(client, round)));
        EXPECT_EQ(rounds_[0].Commit(message), ArenaRounds::Standing::kOpen);
      }
      rounds_[0].Fire();
    }
    return Result();
  }

  uint64_t points_ = 0;
};

TEST_F(DividedSurvivalTest, TheSameBitsAsByThePs) {
  const Outcome divided = Run(1, 0, 0);
  EXPECT_EQ(divided.global_step, 3);
  EXPECT_EQ(divided.minibatches, 9);
  EXPECT_TRUE(divided == ByThePs());
}

TEST_F(DividedSurvivalTest, WhereverAWorkerDiesTheRoundsComeOutTheSame) {
  for (const int num_ps : {1, 2}) {
    const Outcome undisturbed = Run(num_ps, 0, 0);
    const uint64_t points = points_;
    ASSERT_GT(points, 150u);
    for (uint64_t death = 1; death <= points; death += (num_ps * 2 - 1) * kSanitizerStride) {
      ASSERT_TRUE(Run(num_ps, death, 0) == undisturbed) << "death at point " << death << " with " << num_ps << " ps";
      if (death % 5 != 0) continue;
      ASSERT_TRUE(Run(num_ps, death, 1 + death % 37) == undisturbed) << "two deaths, the first at " << death;
    }
  }
}

// The check above must see each of these errors.
TEST_F(DividedSurvivalTest, PlantedBugsAreSeen) {
  const Outcome undisturbed = Run(1, 0, 0);
  const uint64_t points = points_;
  for (const PlantedBug bug : {PlantedBug::kSkipRestore, PlantedBug::kFireTwice, PlantedBug::kTrustEveryShare,
                               PlantedBug::kCountContributorTwice}) {
    probe_.Plant(bug);
    bool seen = false;
    for (uint64_t death = 0; death <= points && !seen; ++death) seen = !(Run(1, death, 0) == undisturbed);
    probe_.Plant(std::nullopt);
    EXPECT_TRUE(seen) << "bug " << static_cast<int>(bug);
  }
}

}  // namespace
}  // namespace muster::divided_round_test
