// Processes that update one arena in place are killed with SIGKILL at every point of an update, including recovery,
// thousands of times. In the end every sum, slot, header and number must be what the acknowledged pushes give. This
// same check must also notice each deliberate error in the protocol.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "muster/store/arena/arena.h"
#include "muster/store/arena/arena_rows.h"
#include "muster/store/arena/count_lock.h"
#include "tests/process/testing/killed_processes.h"
#include "tests/process/testing/left_behind.h"

namespace muster::arena_kill_test {
namespace {

constexpr int kWriters = 3;
constexpr uint32_t kMinibatches = 3;  // per push
constexpr uint64_t kSeed = 20240601;
// The bug that shows most rarely was missed once in 25 runs of 300 deaths.
constexpr int kPlantedDeaths = 1500;

// A table with some rows that cross stripes.
constexpr int64_t kTableRows = 500;
constexpr int64_t kTableWidth = 100;

// Shared by the writers and the test, besides the arena.
struct Shared {
  KillLog log;
  std::array<std::atomic<uint64_t>, kWriters> acknowledged;  // by writer
  std::array<std::atomic<uint64_t>, kWriters> lives;
};

StoreModel TestModel(const RuleSpec& rule) {
  const std::vector<VariableSpec> variables = {
      {.name = "w", .shape = {2 * kStripeElements + 100}},
      {.name = "b", .dtype = DType::kFloat64, .shape = {5000}},
      {.name = "v", .shape = {kUndoBlockElements + 1}},
      {.name = "table", .shape = {kTableRows, kTableWidth}, .kind = VariableKind::kRows}};
  return ModelOfPs(variables, *PlaceVariables(variables, 1, Placement::kRoundRobin, {}), rule, 0);
}

// Returns the integer that push `sequence` of `writer` adds everywhere.
int Amount(int writer, uint64_t sequence) { return static_cast<int>((sequence * 7 + writer * 3) % 5) + 1; }

// Returns whether the push changes the row: every third, some in each stripe.
bool HasRow(int writer, uint64_t sequence, int64_t row) { return (row + sequence + writer) % 3 == 0; }

// Pushes to one slice.
void PushSlice(Arena& arena, int slice, int writer, uint64_t sequence) {
  const ArenaPush push = {.client = writer, .sequence = sequence, .generation = 1, .learning_rate = 1};
  const int amount = Amount(writer, sequence);
  if (arena.model().variable(arena.model().slices[slice]).kind != VariableKind::kRows) {
    arena.Apply(slice, push, EvenGradient(arena, slice, -amount), {});
    return;
  }
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < kTableRows; ++row)
    if (HasRow(writer, sequence, row)) rows.push_back(row);
  const std::vector<float> gradients(rows.size() * kTableWidth, static_cast<float>(-amount));
  ArenaRows(arena).Push(slice, push, {rows, AsBytes(gradients.data(), gradients.size()).data()});
}

// One life of a writer: attaches, recovers, then pushes until it is killed or told to stop.
void Write(int fd, int writer, Shared& shared, int one_in, std::optional<PlantedBug> bug) {
  const uint64_t life = ++shared.lives[writer];
  KillingProbe probe(shared.log, kSeed + life * 1009 + writer, one_in, bug);
  std::minstd_rand order(kSeed + life * 31 + writer);
  auto arena = *Arena::Attach(*ArenaMemory::Adopt(fd), kWriters, &probe);
  arena->RecoverWriter(writer);
  const int num_slices = static_cast<int>(arena->layout().slices().size());
  do {
    const uint64_t sequence = shared.acknowledged[writer] + 1;
    const int first = static_cast<int>(order() % num_slices);  // slices in the order of ready gradients, not of stripes
    for (int i = 0; i < num_slices; ++i) PushSlice(*arena, (first + i) % num_slices, writer, sequence);
    Arena::CountLock(*arena).Add({.client = writer,
                                  .sequence = sequence,
                                  .generation = 1,
                                  .update = true,
                                  .applied = true,
                                  .minibatches = kMinibatches});
    shared.acknowledged[writer] = sequence;
  } while (!shared.log.stop);
}

// Returns how many counters and numbers differ from what the acknowledged pushes give.
int WrongCounts(Arena& arena, const Shared& shared, uint64_t pushes) {
  { const Arena::CountLock finishes_what_was_begun(arena); }
  const ArenaCounters& counters = arena.header().counters;
  int wrong = counters.updates != pushes;
  wrong += counters.global_step != static_cast<int64_t>(pushes);
  wrong += counters.minibatches != static_cast<int64_t>(kMinibatches * pushes);
  for (int writer = 0; writer < kWriters; ++writer) {
    const ClientNumbers& numbers = arena.client(writer).numbers;
    wrong += numbers.last_applied != shared.acknowledged[writer];
    wrong += numbers.last_counted != shared.acknowledged[writer];
  }
  return wrong;
}

double ElementAt(const std::vector<std::byte>& bytes, size_t size, int64_t i) {
  double wide = 0;
  float narrow = 0;
  if (size == 8) {
    std::memcpy(&wide, bytes.data() + i * 8, 8);
    return wide;
  }
  std::memcpy(&narrow, bytes.data() + i * 4, 4);
  return narrow;
}

class ArenaKillTest : public ::testing::Test {
 protected:
  void MakeArena(const RuleSpec& rule) {
    memory_ = *ArenaMemory::Create();
    arena_ = *Arena::Create(TestModel(rule), kWriters, *ArenaMemory::Adopt(memory_->fd()));
    const std::vector<std::byte> zeros(arena_->layout().value_bytes());
    arena_->Load({.generation = 1, .values = zeros});
  }

  // Restarts writers until `kills` have died; then each finishes its push undisturbed. Returns how many died; fewer
  // than `kills` if the writers got stuck.
  int RunUntilKilled(int writers, int kills, int one_in, std::optional<PlantedBug> bug = std::nullopt) {
    return muster::RunUntilKilled(writers, kills, absl::Seconds(60), shared_->log,
                                  [&](int writer) { Write(memory_->fd(), writer, *shared_, one_in, bug); });
  }

  StripeHeader& Stripe(int64_t index) {
    return *reinterpret_cast<StripeHeader*>(arena_->memory().data() + arena_->layout().stripe_offset(index));
  }

  // Returns how many elements and header fields differ from what the acknowledged pushes give.
  int CountWrong() {
    double sum = 0;
    std::vector<double> row_sums(kTableRows);
    uint64_t pushes = 0;
    for (int writer = 0; writer < kWriters; ++writer) {
      const uint64_t acknowledged = shared_->acknowledged[writer];
      pushes += acknowledged;
      for (uint64_t sequence = 1; sequence <= acknowledged; ++sequence) {
        sum += Amount(writer, sequence);
        for (int64_t row = 0; row < kTableRows; ++row)
          if (HasRow(writer, sequence, row)) row_sums[row] += Amount(writer, sequence);
      }
    }
    int wrong = WrongCounts(*arena_, *shared_, pushes);
    for (size_t slice = 0; slice < arena_->layout().slices().size(); ++slice) {
      const ArenaLayout::Slice& layout = arena_->layout().slices()[slice];
      std::vector<std::byte> bytes(layout.bytes);
      arena_->Read(static_cast<int>(slice), bytes);
      const bool table = arena_->model().variable(arena_->model().slices[slice]).kind == VariableKind::kRows;
      for (int64_t i = 0; i < layout.elements; ++i)
        wrong += ElementAt(bytes, layout.element_size, i) != (table ? row_sums[i / kTableWidth] : sum);
      // The first stripe of a table counts its pushes; with several writers the t of the others may be less.
      for (int64_t i = 0; i < layout.num_stripes; ++i)
        wrong += WrongFields(Stripe(layout.first_stripe + i), pushes, /*counts=*/!table || i == 0);
    }
    return wrong;
  }

  const LeftBehind left_behind_;
  SharedWithChildren<Shared> shared_;
  std::unique_ptr<ArenaMemory> memory_;
  std::unique_ptr<Arena> arena_;

 private:
  int WrongFields(StripeHeader& head, uint64_t pushes, bool counts) {
    int wrong = (head.updates != pushes) + (counts && head.t != pushes);
    for (int writer = 0; writer < kWriters; ++writer)
      wrong += head.last_sequence()[writer] != shared_->acknowledged[writer];
    return wrong;
  }
};

TEST_F(ArenaKillTest, FourThousandDeathsLoseNothingAndDoNothingTwice) {
  MakeArena({.kind = RuleKind::kSgd});
  EXPECT_GE(RunUntilKilled(kWriters, 4000, 150), 4000);
  EXPECT_EQ(CountWrong(), 0);
  ExpectDeathsAt(kUpdatePoints, shared_->log);
}

// With one writer the order of the pushes is known, so every bit is, including the slots'.
TEST_F(ArenaKillTest, SlotsAreBitByBitThoseOfAnUninterruptedRun) {
  const RuleSpec adam = {.kind = RuleKind::kAdam, .learning_rate = 1};
  MakeArena(adam);
  EXPECT_GE(RunUntilKilled(1, 200, 60), 200);
  auto plain = *Arena::Create(TestModel(adam), kWriters);
  const std::vector<std::byte> zeros(plain->layout().value_bytes());
  plain->Load({.generation = 1, .values = zeros});
  const int num_slices = static_cast<int>(plain->layout().slices().size());
  for (uint64_t sequence = 1; sequence <= shared_->acknowledged[0]; ++sequence)
    for (int slice = 0; slice < num_slices; ++slice) PushSlice(*plain, slice, 0, sequence);
  for (int slice = 0; slice < num_slices; ++slice) {
    std::vector<std::byte> killed(plain->layout().slices()[slice].bytes), whole(killed.size());
    arena_->Read(slice, killed);
    plain->Read(slice, whole);
    EXPECT_TRUE(killed == whole) << "values of slice " << slice;
    for (int slot = 0; slot < 2; ++slot) {
      arena_->ReadSlot(slice, slot, killed);
      plain->ReadSlot(slice, slot, whole);
      EXPECT_TRUE(killed == whole) << "slot " << slot << " of slice " << slice;
    }
  }
  EXPECT_EQ(arena_->ReadSteps(), plain->ReadSteps());
}

class PlantedBugTest : public ArenaKillTest, public ::testing::WithParamInterface<PlantedBug> {};

TEST_P(PlantedBugTest, IsSeen) {
  MakeArena({.kind = RuleKind::kSgd});
  const int died = RunUntilKilled(kWriters, kPlantedDeaths, 150, GetParam());
  EXPECT_TRUE(died < kPlantedDeaths || CountWrong() > 0) << kPlantedDeaths << " deaths, and nothing is wrong";
}

std::string NameOfBug(const ::testing::TestParamInfo<PlantedBug>& info) {
  static constexpr const char* kNames[] = {"SkipRestore", "IgnoreSequence", "CommitBeforeHeader", "SkipOwnRecovery",
                                           "CountTwice"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBugTest,
                         ::testing::Values(PlantedBug::kSkipRestore, PlantedBug::kIgnoreSequence,
                                           PlantedBug::kCommitBeforeHeader, PlantedBug::kSkipOwnRecovery,
                                           PlantedBug::kCountTwice),
                         NameOfBug);

}  // namespace
}  // namespace muster::arena_kill_test
