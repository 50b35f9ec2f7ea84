// Compares an arena's row updates with the rule on the whole table: any width, any type, interrupted anywhere.
#include "muster/store/arena/arena_rows.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "muster/optim/kernels/half.h"
#include "muster/optim/sparse_rows.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/model/row_initializer.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::arena_rows_test {
namespace {

VariableSpec TableSpec(int64_t rows, int64_t width, DType dtype = DType::kFloat32, RowInitializer initial = {}) {
  return {.name = "table",
          .dtype = dtype,
          .shape = {rows, width},
          .kind = VariableKind::kRows,
          .table = {.initial = initial}};
}

const RowInitializer kUniform = RowInitializer::Uniform(-1, 1, 7);

std::unique_ptr<Arena> MakeArena(const VariableSpec& table, const RuleSpec& rule, ArenaProbe* probe = nullptr) {
  auto arena = Arena::Create(ModelOn({{.name = "before", .shape = {3}}, table}, rule), 2, nullptr, probe).value();
  const std::vector<std::byte> zeros(12);
  arena->Load({.generation = 1, .values = zeros, .with_rows = false});
  return arena;
}

std::vector<int64_t> SomeRows(int64_t rows, double share, std::minstd_rand& random) {
  std::vector<int64_t> some;
  for (int64_t row = 0; row < rows; ++row)
    if (static_cast<double>(random() % 1000) < 1000 * share) some.push_back(row);
  return some;
}

template <typename T>
std::vector<T> Wave(size_t count, double phase) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(std::sin(phase + 0.13 * static_cast<double>(i)));
  return values;
}

template <typename T>
ByteSpan Bytes(const std::vector<T>& values) {
  return AsBytes(values.data(), values.size());
}

// The whole table in plain memory, updated by ApplyRows.
struct Plain {
  Plain(const VariableSpec& spec, const RuleSpec& rule_spec)
      : table(spec), rule(*MakeUpdateRule(rule_spec)), value(spec.bytes()), slots(rule->slots().size()) {
    InitializeRows(spec, {}, 0, value);
    for (auto& slot : slots) slot.resize(spec.elements() * DTypeSize(SlotDType(spec.dtype)));
  }
  void Push(std::span<const int64_t> rows, ByteSpan gradients, double learning_rate) {
    const std::vector<MutableByteSpan> spans(slots.begin(), slots.end());
    const absl::Status applied =
        ApplyRows(*rule, {.dtype = table.dtype, .width = table.shape[1], .value = value, .slots = spans}, rows,
                  gradients, {.learning_rate = learning_rate, .t = ++t});
    EXPECT_TRUE(applied.ok()) << applied;
  }
  const VariableSpec table;
  const std::unique_ptr<UpdateRule> rule;
  std::vector<std::byte> value;
  std::vector<std::vector<std::byte>> slots;
  uint64_t t = 0;
};

void ExpectSame(Arena& arena, const Plain& plain, const std::string& when) {
  std::vector<std::byte> bytes(plain.value.size());
  arena.Read(1, bytes);
  EXPECT_TRUE(bytes == plain.value) << "values differ " << when;
  for (size_t slot = 0; slot < plain.slots.size(); ++slot) {
    bytes.resize(plain.slots[slot].size());
    arena.ReadSlot(1, static_cast<int>(slot), bytes);
    EXPECT_TRUE(bytes == plain.slots[slot]) << "slot " << slot << " differs " << when;
  }
}

class ArenaRowsTest : public ::testing::TestWithParam<std::tuple<int64_t, RuleKind>> {};

TEST_P(ArenaRowsTest, IsTheRuleOnTheWholeTable) {
  const auto [width, kind] = GetParam();
  const int64_t rows = 50'000 / width + 3;
  const RuleSpec rule = {.kind = kind, .learning_rate = 0.1};
  const VariableSpec table = TableSpec(rows, width, DType::kFloat32, kUniform);
  auto arena = MakeArena(table, rule);
  Plain plain(table, rule);
  ArenaRows arena_rows(*arena);
  std::minstd_rand random(11);
  for (uint64_t sequence = 1; sequence <= 6; ++sequence) {
    const auto some = SomeRows(rows, sequence % 2 == 0 ? 0.02 : 0.7, random);
    const auto gradients = Wave<float>(some.size() * width, static_cast<double>(sequence));
    const auto before = gradients;
    EXPECT_TRUE(arena_rows.Push(1, {.client = 1, .sequence = sequence, .generation = 1, .learning_rate = 0.1},
                                {some, Bytes(gradients).data()}));
    EXPECT_EQ(gradients, before);
    plain.Push(some, Bytes(gradients), 0.1);
    ExpectSame(*arena, plain, absl::StrCat("after push ", sequence));
    std::vector<int64_t> asked(some.rbegin(), some.rend());
    asked.insert(asked.end(), {rows - 1, 0, rows - 1});
    std::vector<std::byte> gathered(asked.size() * width * sizeof(float));
    arena_rows.Gather(1, {.rows = asked, .places = {}}, gathered);
    for (size_t i = 0; i < asked.size(); ++i)
      ASSERT_EQ(std::memcmp(gathered.data() + i * width * 4, plain.value.data() + asked[i] * width * 4, width * 4), 0)
          << "row " << asked[i];
  }
}

// Widths that divide a stripe, that don't, and that are larger than a stripe.
INSTANTIATE_TEST_SUITE_P(All, ArenaRowsTest,
                         ::testing::Combine(::testing::Values<int64_t>(1, 64, 100, 16'384, 20'000),
                                            ::testing::Values(RuleKind::kSgd, RuleKind::kMomentum, RuleKind::kAdam,
                                                              RuleKind::kAdagrad, RuleKind::kFtrl)));

TEST(ArenaRows, DoublesAndHalves) {
  const RuleSpec rule = {.kind = RuleKind::kAdam, .learning_rate = 0.1};
  {
    const VariableSpec table = TableSpec(600, 50, DType::kFloat64, kUniform);
    auto arena = MakeArena(table, rule);
    Plain plain(table, rule);
    const std::vector<int64_t> some = {0, 1, 327, 328, 599};
    const auto gradients = Wave<double>(some.size() * 50, 1);
    EXPECT_TRUE(ArenaRows(*arena).Push(1, {.sequence = 1, .generation = 1, .learning_rate = 0.1},
                                       {some, Bytes(gradients).data()}));
    plain.Push(some, Bytes(gradients), 0.1);
    ExpectSame(*arena, plain, "of doubles");
  }
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const VariableSpec table = TableSpec(600, 50, dtype, kUniform);
    auto arena = MakeArena(table, rule);
    Plain plain(table, rule);
    const std::vector<int64_t> some = {0, 1, 327, 328, 599};
    const auto floats = Wave<float>(some.size() * 50, 1);
    std::vector<std::byte> halves(floats.size() * kHalfBytes);
    HalvesFromFloats(dtype, floats.data(), halves.data(), floats.size());
    std::vector<float> rounded(floats.size());
    FloatsFromHalves(dtype, halves.data(), rounded.data(), rounded.size());
    EXPECT_TRUE(ArenaRows(*arena).Push(1, {.sequence = 1, .generation = 1, .learning_rate = 0.1},
                                       {some, Bytes(rounded).data()}));
    plain.Push(some, halves, 0.1);
    ExpectSame(*arena, plain, "of halves");
  }
}

TEST(ArenaRows, ARetryChangesNothingAndAnotherGenerationIsRefused) {
  const VariableSpec table = TableSpec(1000, 64);
  auto arena = MakeArena(table, RuleSpec{.kind = RuleKind::kAdam});
  ArenaRows rows(*arena);
  const std::vector<int64_t> some = {3, 300, 999};
  const auto gradients = Wave<float>(some.size() * 64, 1);
  const ArenaPush push = {.client = 1, .sequence = 5, .generation = 1, .learning_rate = 0.1};
  EXPECT_TRUE(rows.Push(1, push, {some, Bytes(gradients).data()}));
  std::vector<std::byte> once(table.bytes()), twice(table.bytes());
  arena->Read(1, once);
  EXPECT_TRUE(rows.Push(1, push, {some, Bytes(gradients).data()}));
  arena->Read(1, twice);
  EXPECT_TRUE(once == twice);
  EXPECT_FALSE(rows.Push(1, {.sequence = 6, .generation = 2, .learning_rate = 0.1}, {some, Bytes(gradients).data()}));
  arena->Read(1, twice);
  EXPECT_TRUE(once == twice);
  EXPECT_EQ(arena->HighestSequences()[1], 5);
}

// t also counts pushes without any of the slice's rows.
TEST(ArenaRows, TheFirstStripeCountsThePushes) {
  auto arena = MakeArena(TableSpec(1000, 64), RuleSpec{});
  ArenaRows rows(*arena);
  const auto gradients = Wave<float>(64, 1);
  const std::vector<int64_t> last = {999};
  for (uint64_t sequence = 1; sequence <= 3; ++sequence)
    rows.Push(1, {.sequence = sequence, .generation = 1}, {last, Bytes(gradients).data()});
  rows.Push(1, {.sequence = 4, .generation = 1}, {});
  EXPECT_THAT(arena->ReadSteps(), ::testing::ElementsAre(0, 4, 0, 0, 3));
}

TEST(ArenaRows, ACheckpointMarkKeepsWhatWas) {
  const VariableSpec table = TableSpec(1000, 64, DType::kFloat32, kUniform);
  auto arena = MakeArena(table, RuleSpec{.learning_rate = 0.1});
  std::vector<std::byte> before(table.bytes());
  arena->Read(1, before);
  const uint64_t mark = arena->Mark();
  const auto gradients = Wave<float>(64, 1);
  const std::vector<int64_t> one = {500};
  ArenaRows(*arena).Push(1, {.sequence = 1, .generation = 1, .learning_rate = 0.1}, {one, Bytes(gradients).data()});
  ASSERT_TRUE(arena->FinishMark(mark));
  const ByteSpan aside = arena->AsideValue(1);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), aside.begin(), aside.end()));
}

struct Death : std::exception {};

// Dies when it has passed `point` that many times.
class DyingProbe final : public ArenaProbe {
 public:
  void At(ArenaPoint) override {
    if (countdown && (*countdown)-- == 0) {
      countdown.reset();
      dying_ = true;
      throw Death();
    }
  }
  bool Has(PlantedBug) const override { return false; }
  bool dying() const override { return dying_; }
  void Revive() { dying_ = false; }
  std::optional<int> countdown;

 private:
  bool dying_ = false;
};

// A stripe that is interrupted at any point is as before the update or as after it; recovered and pushed again, the
// table is that of an uninterrupted run, bit by bit. (A thread that ends with a robust lock leaves it as a dead process
// does; tests/process/arena_kill_test kills for real.)
TEST(ArenaRows, WhateverIsInterruptedIsUndone) {
  const RuleSpec adam = {.kind = RuleKind::kAdam, .learning_rate = 0.1};
  const VariableSpec table = TableSpec(400, 100, DType::kFloat32, kUniform);
  const std::vector<int64_t> some = {0, 7, 163, 164, 165, 327, 399};  // 163 and 327 lie across stripes
  const auto gradients = Wave<float>(some.size() * 100, 1);
  const ArenaPush push = {.client = 1, .sequence = 1, .generation = 1, .learning_rate = 0.1};
  Plain plain(table, adam);
  const std::vector<std::byte> before = plain.value;
  plain.Push(some, Bytes(gradients), 0.1);
  int interrupted = 0;
  for (int point = 0;; ++point) {
    DyingProbe probe;
    auto arena = MakeArena(table, adam, &probe);
    probe.countdown = point;
    const int64_t first = arena->layout().slices()[1].first_stripe;
    bool died = false;
    std::thread([&] {
      try {
        EXPECT_TRUE(ArenaRows(*arena).Push(1, push, {some, Bytes(gradients).data()}));
      } catch (const Death&) {
        died = true;
      }
    }).join();
    if (!died) break;
    ++interrupted;
    probe.Revive();
    arena->RecoverWriter(1);
    EXPECT_TRUE(ArenaRows(*arena).Push(1, push, {some, Bytes(gradients).data()}));
    ExpectSame(*arena, plain, absl::StrCat("after a death at point ", point));
    EXPECT_EQ(arena->ReadSteps()[first], 1);
  }
  EXPECT_GT(interrupted, 40);
}

TEST(RowInitializer, DoesNotDependOnThePartition) {
  for (const auto& initial : {kUniform, RowInitializer::Normal(2, 0.5, 3)}) {
    VariableSpec table = TableSpec(101, 7, DType::kFloat32, initial);
    std::vector<float> whole(101 * 7);
    InitializeRows(table, {}, 0, AsMutableBytes(whole.data(), whole.size()));
    for (const RowPartition partition : {RowPartition::kMod, RowPartition::kDiv}) {
      table.table.partition = partition;
      const auto placed = *PlaceVariables({table}, 3, Placement::kRoundRobin, {});
      for (const PlacedSlice& slice : placed.slices) {
        std::vector<float> part(slice.elements);
        InitializeRows(table, slice, 0, AsMutableBytes(part.data(), 10));
        InitializeRows(table, slice, 10, AsMutableBytes(part.data() + 10, part.size() - 10));
        const RowSplit split(partition, 101, 3);
        for (int64_t row = 0; row < 101; ++row) {
          const RowSplit::Place place = split.PlaceOf(row);
          if (place.shard != slice.shard) continue;
          for (int64_t i = 0; i < 7; ++i) ASSERT_EQ(part[place.row * 7 + i], whole[row * 7 + i]) << row;
        }
      }
    }
  }
}

TEST(RowInitializer, HasTheMomentsItIsAskedFor) {
  const auto moments = [](const RowInitializer& initial) {
    std::vector<double> values(100'000);
    InitializeRows(TableSpec(1000, 100, DType::kFloat64, initial), {}, 0, AsMutableBytes(values.data(), values.size()));
    double sum = 0, squares = 0;
    for (const double value : values) sum += value, squares += value * value;
    const double mean = sum / 1e5;
    return std::pair(mean, std::sqrt(squares / 1e5 - mean * mean));
  };
  const auto [uniform_mean, uniform_deviation] = moments(RowInitializer::Uniform(1, 3, 5));
  EXPECT_NEAR(uniform_mean, 2, 0.01);
  EXPECT_NEAR(uniform_deviation, 2 / std::sqrt(12.0), 0.01);
  const auto [normal_mean, normal_deviation] = moments(RowInitializer::Normal(-1, 0.5, 5));
  EXPECT_NEAR(normal_mean, -1, 0.01);
  EXPECT_NEAR(normal_deviation, 0.5, 0.01);
}

}  // namespace
}  // namespace muster::arena_rows_test
