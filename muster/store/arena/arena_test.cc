#include "muster/store/arena/arena.h"

#include <gmock/gmock.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "muster/store/arena/arena_locks.h"
#include "muster/store/testing/scripted_death.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::arena_test {
namespace {

constexpr int64_t kSizes[] = {1, 16383, 16384, 16385, 3 * 16384 + 17};

std::unique_ptr<Arena> MakeArena(const std::vector<VariableSpec>& variables, const RuleSpec& rule, int clients = 2) {
  auto arena = Arena::Create(ModelOn(variables, rule), clients).value();
  const std::vector<std::byte> zeros(arena->layout().value_bytes());
  arena->Load({.values = zeros});
  return arena;
}

template <typename T>
std::vector<std::byte> Wave(int64_t count, double phase) {
  std::vector<T> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(std::sin(phase + 0.13 * static_cast<double>(i)));
  std::vector<std::byte> bytes(count * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<std::byte> ReadAll(Arena& arena, int slice) {
  std::vector<std::byte> bytes(arena.layout().slices()[slice].bytes);
  arena.Read(slice, bytes);
  return bytes;
}

// Applies the rule to the whole variable at once, as if there were no stripes.
struct Whole {
  Whole(const RuleSpec& spec, std::vector<std::byte> initial)
      : rule(*MakeUpdateRule(spec)), value(std::move(initial)), slots(rule->slots().size()) {
    for (auto& slot : slots) slot.resize(value.size());
  }
  void Apply(DType dtype, ByteSpan gradient, double learning_rate) {
    std::vector<MutableByteSpan> spans(slots.begin(), slots.end());
    rule->Apply(dtype, value, spans, gradient, {.learning_rate = learning_rate, .t = ++t});
  }
  const std::unique_ptr<UpdateRule> rule;
  std::vector<std::byte> value;
  std::vector<std::vector<std::byte>> slots;
  uint64_t t = 0;
};

template <typename T>
void CompareWithWhole(const RuleSpec& spec, DType dtype, int64_t count) {
  auto arena = MakeArena({{.name = "before", .shape = {3}}, {.name = "w", .dtype = dtype, .shape = {count}}}, spec);
  Whole whole(spec, Wave<T>(count, 1));
  std::vector<std::byte> values(12);
  values.insert(values.end(), whole.value.begin(), whole.value.end());
  arena->Load({.values = values});
  std::vector<std::byte> pulled(whole.value.size());
  for (uint64_t sequence = 1; sequence <= 5; ++sequence) {
    const std::vector<std::byte> gradient = Wave<T>(count, 7.0 * static_cast<double>(sequence));
    const std::vector<std::byte> before = gradient;
    const double rate = 0.1 / static_cast<double>(sequence);
    arena->Apply(1, {.client = 1, .sequence = sequence, .learning_rate = rate}, gradient, pulled);
    whole.Apply(dtype, gradient, rate);
    ASSERT_EQ(gradient, before) << "the gradient was written to";
    ASSERT_EQ(pulled, whole.value) << "after push " << sequence;
  }
  EXPECT_EQ(ReadAll(*arena, 1), whole.value);
  for (size_t slot = 0; slot < whole.slots.size(); ++slot) {
    std::vector<std::byte> bytes(whole.value.size());
    arena->ReadSlot(1, static_cast<int>(slot), bytes);
    EXPECT_EQ(bytes, whole.slots[slot]) << "slot " << slot;
  }
  std::vector<uint64_t> steps(arena->layout().num_stripes(), 5);
  steps[0] = 0;
  EXPECT_EQ(arena->ReadSteps(), steps);
  EXPECT_EQ(ReadAll(*arena, 0), std::vector<std::byte>(12)) << "the neighbour was touched";
}

class ArenaRuleTest : public ::testing::TestWithParam<RuleSpec> {};

TEST_P(ArenaRuleTest, StripesGiveWhatTheRuleGivesOnTheWholeVariable) {
  for (const int64_t count : kSizes) {
    SCOPED_TRACE(count);
    CompareWithWhole<float>(GetParam(), DType::kFloat32, count);
    CompareWithWhole<double>(GetParam(), DType::kFloat64, count);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ArenaRuleTest,
                         ::testing::Values(RuleSpec{.kind = RuleKind::kSgd}, RuleSpec{.kind = RuleKind::kMomentum},
                                           RuleSpec{.kind = RuleKind::kMomentum, .nesterov = true},
                                           RuleSpec{.kind = RuleKind::kAdam}),
                         [](const auto& info) {
                           return RuleName(info.param.kind) + (info.param.nesterov ? "_nesterov" : "");
                         });

TEST(ArenaTest, SgdAgainstTheRuleOnPaper) {
  auto arena = MakeArena({{.name = "w", .shape = {20000}}}, {});
  std::vector<float> gradient(20000);
  std::iota(gradient.begin(), gradient.end(), 0.0f);
  arena->Apply(0, {.sequence = 1, .learning_rate = 0.5}, AsBytes(gradient.data(), gradient.size()), {});
  std::vector<float> value(20000);
  arena->Read(0, AsMutableBytes(value.data(), value.size()));
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(value[i], -0.5f * static_cast<float>(i));
}

TEST(ArenaTest, ANumberThatWasSeenLeavesTheStripeButIsAnsweredWithItsValue) {
  auto arena = MakeArena({{.name = "w", .shape = {40000}}}, {.kind = RuleKind::kAdam});
  const std::vector<std::byte> gradient = Wave<float>(40000, 3);
  const Arena::Push push{.client = 0, .sequence = 9, .learning_rate = 0.1};
  arena->Apply(0, push, gradient, {});
  const std::vector<std::byte> once = ReadAll(*arena, 0);
  std::vector<std::byte> pulled(once.size());
  arena->Apply(0, push, gradient, pulled);
  EXPECT_EQ(ReadAll(*arena, 0), once);
  EXPECT_EQ(pulled, once);
  arena->Apply(0, {.client = 0, .sequence = 8, .learning_rate = 0.1}, gradient, {});
  EXPECT_EQ(ReadAll(*arena, 0), once) << "an older number than the last must not be applied either";
  EXPECT_EQ(arena->ReadSteps(), std::vector<uint64_t>(3, 1));
  // Each client has its own numbers.
  arena->Apply(0, {.client = 1, .sequence = 1, .learning_rate = 0.1}, gradient, {});
  EXPECT_NE(ReadAll(*arena, 0), once);
  EXPECT_EQ(arena->ReadSteps(), std::vector<uint64_t>(3, 2));
}

TEST(ArenaTest, AStoppedPsIsKilledOnlyIfItsLauncherKeepsTheModel) {
  const pid_t worker = getpid() + 1;
  const auto by_hand = MakeArena({{.name = "w", .shape = {20}}}, {});
  EXPECT_FALSE(Arena::Locks(*by_hand).MayKill(getpid())) << "the model would be lost";
  EXPECT_TRUE(Arena::Locks(*by_hand).MayKill(worker));

  const auto launchers = ArenaMemory::Create().value();
  const auto below_a_launcher =
      Arena::Create(ModelOn({{.name = "w", .shape = {20}}}, {}), 2, ArenaMemory::Adopt(launchers->fd()).value())
          .value();
  EXPECT_TRUE(Arena::Locks(*below_a_launcher).MayKill(getpid()));

  // A worker that attaches sees the same.
  const std::vector<std::byte> zeros(below_a_launcher->layout().value_bytes());
  below_a_launcher->Load({.values = zeros});
  below_a_launcher->header().outlives = 0;
  const auto attached = Arena::Attach(ArenaMemory::Adopt(launchers->fd()).value(), 2).value();
  EXPECT_FALSE(Arena::Locks(*attached).MayKill(getpid()));
  Arena::Locks(*attached).TakeOver();
  EXPECT_TRUE(Arena::Locks(*attached).MayKill(getpid())) << "a restarted ps";
  int mutexes = 0;
  Arena::Locks(*attached).ForEachMutex([&mutexes](pthread_mutex_t*) { ++mutexes; });
  EXPECT_EQ(mutexes, 2) << "the counters' and the only stripe's";
}

TEST(ArenaTest, ABufferTakesTheBytesAndKnowsNoRule) {
  auto arena = MakeArena({{.name = "count", .dtype = DType::kInt64, .shape = {3}, .kind = VariableKind::kBuffer}},
                         {.kind = RuleKind::kAdam});
  const std::vector<int64_t> first = {5, -6, 7};
  const std::vector<int64_t> second = {8, 9, 10};
  std::vector<int64_t> value(3);
  arena->Apply(0, {.sequence = 1, .learning_rate = 0.5}, AsBytes(first.data(), 3), AsMutableBytes(value.data(), 3));
  EXPECT_EQ(value, first);
  arena->Apply(0, {.sequence = 2, .learning_rate = 0.5}, AsBytes(second.data(), 3), {});
  arena->Apply(0, {.sequence = 1, .learning_rate = 0.5}, AsBytes(first.data(), 3), {});
  arena->Read(0, AsMutableBytes(value.data(), 3));
  EXPECT_EQ(value, second);
  EXPECT_EQ(arena->ReadSteps(), std::vector<uint64_t>{0});
}

TEST(ArenaTest, HeaderAndStepsAfterCreation) {
  auto arena = MakeArena({{.name = "w", .shape = {16385}}}, {.kind = RuleKind::kMomentum}, 7);
  EXPECT_EQ(arena->header().magic, kArenaMagic);
  EXPECT_EQ(arena->header().num_clients, 7u);
  EXPECT_EQ(arena->header().layout_hash, arena->layout().hash());
  EXPECT_EQ(arena->header().total_bytes, arena->layout().total_bytes());
  EXPECT_EQ(arena->header().counters.global_step, 0);
  const std::vector<std::byte> values(arena->layout().value_bytes());
  const std::vector<std::byte> slots(arena->layout().slot_bytes());
  const std::vector<uint64_t> steps = {4, 6};
  arena->Load({.generation = 3, .global_step = 5, .values = values, .slots = slots, .steps = steps});
  EXPECT_EQ(arena->ReadSteps(), steps);
  EXPECT_EQ(arena->header().generation, 3u);
  EXPECT_EQ(arena->header().counters.global_step, 5);
  EXPECT_EQ(arena->header().state, ArenaState::kReady);
}

TEST(ArenaTest, MoreThanThereIsMemoryForNamesTheSize) {
  // 64 TiB of values with their slots are more than an address space.
  StoreModel model = ModelOn({{.name = "w", .shape = {int64_t{1} << 44}}}, {.kind = RuleKind::kAdam});
  const auto arena = Arena::Create(model, 1);
  ASSERT_FALSE(arena.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(arena.status())) << arena.status();
  EXPECT_THAT(
      std::string(arena.status().message()),
      ::testing::ContainsRegex("[0-9]+ MiB are needed for variables, slots and undo \\((this machine has|the limit "
                               "of this process's control group leaves) [0-9]+ MiB"));
}

StripeHeader& Stripe(Arena& arena, int64_t index) {
  return *reinterpret_cast<StripeHeader*>(reinterpret_cast<std::byte*>(&arena.header()) +
                                          arena.layout().stripe_offset(index));
}

TEST(ArenaTest, AProcessThatDiesWithALockHoldsUpNobody) {
  auto arena = MakeArena({{.name = "w", .shape = {40000}}}, {});
  const std::vector<float> ones(40000, 1.0f);
  for (uint64_t death = 1; death <= 2; ++death) {
    const pid_t child = fork();
    if (child == 0) {
      pthread_mutex_lock(&Stripe(*arena, 1).mutex);
      _exit(0);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    arena->Apply(0, {.sequence = death, .learning_rate = 1}, AsBytes(ones.data(), ones.size()), {});
    // Usable by every process again, not only by the first that finds it.
    std::vector<float> value(40000);
    arena->Read(0, AsMutableBytes(value.data(), value.size()));
    EXPECT_EQ(value, std::vector<float>(40000, -static_cast<float>(death)));
  }
}

TEST(ArenaTest, ManyThreadsLoseNoUpdateAndTearNoStripe) {
  constexpr int kThreads = 4;
  constexpr int kPushes = 50;
  auto arena = MakeArena({{.name = "w", .shape = {2 * kStripeElements}}}, {}, kThreads);
  const std::vector<float> ones(2 * kStripeElements, 1.0f);
  std::vector<std::thread> threads;
  for (int client = 0; client < kThreads; ++client) {
    threads.emplace_back([&, client] {
      std::vector<float> pulled(ones.size());
      for (uint64_t sequence = 1; sequence <= kPushes; ++sequence) {
        arena->Apply(0, {.client = client, .sequence = sequence, .learning_rate = 1}, AsBytes(ones.data(), ones.size()),
                     AsMutableBytes(pulled.data(), pulled.size()));
        for (const size_t stripe : {size_t{0}, size_t{kStripeElements}}) {
          const auto begin = pulled.begin() + static_cast<std::ptrdiff_t>(stripe);
          ASSERT_TRUE(std::all_of(begin, begin + kStripeElements, [&](float x) { return x == *begin; }));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<float> value(ones.size());
  arena->Read(0, AsMutableBytes(value.data(), value.size()));
  EXPECT_EQ(value, std::vector<float>(ones.size(), -static_cast<float>(kThreads * kPushes)));
}

// An arena that only its own process has saves nothing for the case of a death, and computes the same.
TEST(ArenaTest, WhatEndsWithItsProcessSavesNothingToUndo) {
  ScriptedDeath probe;
  const auto push = [&](bool one_process) {
    const StoreModel model = ModelOn({{.name = "w", .shape = {5000}}}, {.kind = RuleKind::kSgd});
    auto arena = *Arena::Create(model, 1, nullptr, &probe);
    arena->header().one_process = one_process ? 1 : 0;
    arena->Load({.values = std::vector<std::byte>(20000)});
    probe.KillAt(1, ArenaPoint::kBlockSaved);
    const bool survived =
        Survives([&] { arena->Apply(0, {.client = 0, .sequence = 1, .learning_rate = -1}, Wave<float>(5000, 1), {}); });
    if (survived) {
      EXPECT_EQ(ReadAll(*arena, 0), Wave<float>(5000, 1));
    }
    return survived;
  };
  EXPECT_TRUE(push(true));
  EXPECT_FALSE(push(false));
}

}  // namespace
}  // namespace muster::arena_test
