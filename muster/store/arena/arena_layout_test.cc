#include "muster/store/arena/arena_layout.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "muster/store/arena/arena_format.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::arena_layout_test {
namespace {

using ::testing::HasSubstr;

struct Range {
  uint64_t begin;
  uint64_t end;
  std::string what;
};

// Returns everything that the layout gives out, each with the bytes that its user writes.
std::vector<Range> AllRanges(const ArenaLayout& layout) {
  std::vector<Range> ranges = {{0, sizeof(ArenaHeader), "header"}};
  for (int client = 0; client < layout.num_clients(); ++client) {
    ranges.push_back({layout.client_offset(client), layout.client_offset(client) + sizeof(ClientRecord), "client"});
    ranges.push_back({layout.undo_offset(client), layout.undo_offset(client + 1), "undo"});
  }
  for (const int place : {0, 1})
    ranges.push_back({layout.work_offset(place), layout.work_offset(place) + layout.work_bytes(), "work"});
  const uint64_t stripe_bytes = sizeof(StripeHeader) + layout.num_clients() * sizeof(uint64_t);
  for (int64_t i = 0; i < layout.num_stripes(); ++i)
    ranges.push_back({layout.stripe_offset(i), layout.stripe_offset(i) + stripe_bytes, "stripe"});
  for (const ArenaLayout::Slice& slice : layout.slices()) {
    ranges.push_back({slice.value_offset, slice.value_offset + slice.bytes, "value"});
    for (uint64_t offset : slice.slot_offsets) ranges.push_back({offset, offset + slice.bytes, "slot"});
  }
  ranges.erase(std::remove_if(ranges.begin(), ranges.end(), [](const Range& r) { return r.begin == r.end; }),
               ranges.end());
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return ranges;
}

const std::vector<VariableSpec> kMixed = {
    {.name = "scalar"},
    {.name = "one_stripe", .shape = {128, 128}},
    {.name = "almost", .dtype = DType::kFloat64, .shape = {16383}},
    {.name = "more", .shape = {16385}},
    {.name = "many", .shape = {100, 700}},
    {.name = "none", .shape = {0, 7}},
    {.name = "frozen", .shape = {300}, .kind = VariableKind::kFrozen},
    {.name = "counter", .dtype = DType::kInt64, .kind = VariableKind::kBuffer},
};

TEST(ArenaLayoutTest, NothingOverlapsAndEverythingIsAligned) {
  for (const RuleKind kind : {RuleKind::kSgd, RuleKind::kMomentum, RuleKind::kAdam}) {
    for (const int clients : {0, 1, 3, 9, 200}) {
      const auto layout = ArenaLayout::Make(ModelOn(kMixed, {.kind = kind}), clients).value();
      const std::vector<Range> ranges = AllRanges(layout);
      for (size_t i = 0; i + 1 < ranges.size(); ++i)
        ASSERT_LE(ranges[i].end, ranges[i + 1].begin) << ranges[i].what << " reaches into " << ranges[i + 1].what;
      EXPECT_LE(ranges.back().end, layout.total_bytes());
      EXPECT_EQ(layout.stripe_offset(0) % 4096, 0u);
      EXPECT_EQ(layout.undo_offset(0) % 4096, 0u);
      for (const Range& range : ranges) ASSERT_EQ(range.begin % 64, 0u) << range.what;
    }
  }
}

TEST(ArenaLayoutTest, StripesAreSixteenKiElementsAndNeverSpanSlices) {
  const auto layout = ArenaLayout::Make(ModelOn(kMixed, {.kind = RuleKind::kAdam}), 2).value();
  std::vector<int64_t> stripes;
  int64_t next = 0;
  for (const ArenaLayout::Slice& slice : layout.slices()) {
    EXPECT_EQ(slice.first_stripe, next);
    next += slice.num_stripes;
    stripes.push_back(slice.num_stripes);
  }
  EXPECT_EQ(layout.num_stripes(), next);
  // 16384 is one stripe, 16385 two, 70000 five; no elements, no stripe.
  EXPECT_THAT(stripes, ::testing::ElementsAre(1, 1, 1, 2, 5, 0, 1, 1));
}

TEST(ArenaLayoutTest, OnlyTrainableSlicesHaveSlots) {
  const auto layout = ArenaLayout::Make(ModelOn(kMixed, {.kind = RuleKind::kAdam}), 1).value();
  uint64_t values = 0;
  uint64_t slots = 0;
  for (size_t i = 0; i < kMixed.size(); ++i) {
    const bool trainable = kMixed[i].kind == VariableKind::kTrainable;
    EXPECT_EQ(layout.slices()[i].slot_offsets.size(), trainable ? 2u : 0u) << kMixed[i].name;
    values += kMixed[i].bytes();
    slots += trainable ? 2 * kMixed[i].bytes() : 0;
  }
  EXPECT_EQ(layout.value_bytes(), values);
  EXPECT_EQ(layout.slot_bytes(), slots);
}

TEST(ArenaLayoutTest, AnUndoSlotHoldsTheLargestStripeWithItsSlots) {
  const auto layout =
      ArenaLayout::Make(ModelOn({{.name = "w", .dtype = DType::kFloat64, .shape = {20000}}}, {.kind = RuleKind::kAdam}),
                        1)
          .value();
  EXPECT_EQ(layout.undo_offset(1) - layout.undo_offset(0), 4096u + 3u * 16384u * 8u);
}

TEST(ArenaLayoutTest, TheHashDiffersWhenAnythingDoes) {
  const auto hash = [](const std::vector<VariableSpec>& variables, const RuleSpec& rule, int clients) {
    return ArenaLayout::Make(ModelOn(variables, rule), clients)->hash();
  };
  const std::vector<VariableSpec> base = {{.name = "w", .shape = {3, 4}}, {.name = "b", .shape = {4}}};
  const uint64_t original = hash(base, {}, 2);
  EXPECT_EQ(hash(base, {}, 2), original);
  EXPECT_EQ(hash(base, {.learning_rate = 0.5}, 2), original) << "hyperparameters have no place in the layout";
  EXPECT_NE(hash(base, {}, 3), original);
  EXPECT_NE(hash(base, {.kind = RuleKind::kMomentum}, 2), original);
  const std::vector<std::function<void(std::vector<VariableSpec>&)>> changes = {
      [](auto& v) { v[0].name = "u"; },
      [](auto& v) {
        v[0].shape = {4, 3};
      },
      [](auto& v) { v[0].shape = {12}; },
      [](auto& v) { v[1].dtype = DType::kFloat64; },
      [](auto& v) { v[1].kind = VariableKind::kFrozen; },
      [](auto& v) { std::swap(v[0], v[1]); },
      [](auto& v) { v.pop_back(); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    std::vector<VariableSpec> changed = base;
    changes[i](changed);
    EXPECT_NE(hash(changed, {}, 2), original) << "change " << i;
  }
  // The same variable, cut at another place.
  const auto cut = [&](int shards, int ps) {
    return ArenaLayout::Make(ModelOn(base, {}, 2, ps, {.kind = Partitioning::Kind::kFixed, .shards = shards}), 2)
        ->hash();
  };
  EXPECT_NE(cut(2, 0), cut(3, 0));
  EXPECT_NE(cut(2, 0), cut(2, 1));
}

TEST(ArenaLayoutTest, RefusesAModelThatNoMachineHolds) {
  // Each slice alone is within the limits; their sum would run over 64 bits if it were believed.
  StoreModel model = ModelOn({{.name = "huge", .shape = {int64_t{1} << 43}}}, {.kind = RuleKind::kAdam});
  model.slices.assign(1 << 20, model.slices[0]);
  const auto layout = ArenaLayout::Make(model, 2);
  EXPECT_TRUE(absl::IsInvalidArgument(layout.status())) << layout.status();
  EXPECT_THAT(std::string(layout.status().message()), HasSubstr("elements"));
}

}  // namespace
}  // namespace muster::arena_layout_test
