// recorded_tensorflow_test.cc compares the strategies and partitioners with TensorFlow's.
#include "muster/cluster/placement/placement.h"

#include <gmock/gmock.h>

#include <limits>

namespace muster::placement_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

std::vector<int> PsOf(const PlacementResult& placement) {
  std::vector<int> all;
  for (const PlacedSlice& slice : placement.slices) all.push_back(slice.ps);
  return all;
}

PlacementResult Place(const std::vector<VariableSpec>& variables, int num_ps, Placement placement,
                      const Partitioning& how = {}) {
  return PlaceVariables(variables, num_ps, placement, how).value();
}

TEST(Placement, GreedySortedPlacesTheLargestFirstAndKeepsTheOrder) {
  const std::vector<VariableSpec> variables = {{.name = "a", .shape = {1}},
                                               {.name = "b", .shape = {2}},
                                               {.name = "c", .shape = {3}},
                                               {.name = "d", .shape = {6}}};
  const PlacementResult greedy = Place(variables, 2, Placement::kGreedyBySize);
  EXPECT_THAT(PsOf(greedy), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(greedy.load_bytes, ElementsAre(16, 32));
  const PlacementResult sorted = Place(variables, 2, Placement::kGreedySorted);
  EXPECT_THAT(PsOf(sorted), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(sorted.load_bytes, ElementsAre(24, 24));
  EXPECT_EQ(sorted.slices[0].variable, 0);
  EXPECT_EQ(sorted.imbalance(), 1.0);
}

TEST(Placement, GreedySortedGoesBySliceAndKeepsTiesInOrder) {
  const std::vector<VariableSpec> variables = {{.name = "a", .shape = {3, 2}}, {.name = "b", .shape = {5}}};
  const PlacementResult placed =
      Place(variables, 3, Placement::kGreedySorted, {.kind = Partitioning::Kind::kFixed, .shards = 2});
  // Slices of 4, 2, 3 and 2 elements: the largest first, then 3, then the two of 2.
  EXPECT_THAT(PsOf(placed), ElementsAre(0, 2, 1, 2));
}

TEST(Placement, SlicesCoverTheVariableWithoutGaps) {
  for (int64_t shards : {1, 2, 3, 7, 10, 50}) {
    const VariableSpec variable{.name = "v", .dtype = DType::kFloat64, .shape = {10, 3}};
    const PlacementResult placed =
        Place({variable}, 2, Placement::kRoundRobin, {.kind = Partitioning::Kind::kFixed, .shards = shards});
    int64_t offset = 0;
    for (const PlacedSlice& slice : placed.slices) {
      EXPECT_EQ(slice.offset, offset);
      EXPECT_EQ(slice.elements, slice.shape[0] * slice.shape[1]);
      EXPECT_EQ(slice.bytes, slice.elements * 8);
      EXPECT_EQ(slice.num_shards, static_cast<int>(placed.slices.size()));
      offset += slice.elements;
    }
    EXPECT_EQ(offset, variable.elements());
    EXPECT_EQ(static_cast<int64_t>(placed.slices.size()), std::min<int64_t>(shards, 10));
  }
}

TEST(Placement, ADeviceThatNamesATaskIsObeyedAndDoesNotAdvanceTheRound) {
  const std::vector<VariableSpec> variables = {{.name = "a", .shape = {1}},
                                               {.name = "b", .shape = {1}, .device = "/job:ps/task:2"},
                                               {.name = "c", .shape = {1}, .device = "/job:ps"},
                                               {.name = "d", .shape = {1}, .device = "/cpu:0"}};
  EXPECT_THAT(PsOf(Place(variables, 3, Placement::kRoundRobin)), ElementsAre(0, 2, 1, 2));
  EXPECT_THAT(PsOf(Place(variables, 3, Placement::kGreedyBySize)), ElementsAre(0, 2, 1, 0));
}

TEST(Placement, EmptyVariablesAndScalarsAreOneSlice) {
  const Partitioning how{.kind = Partitioning::Kind::kMaxBytes, .max_shard_bytes = 1};
  const PlacementResult placed = Place({{.name = "a", .shape = {0, 5}}, {.name = "b", .shape = {5, 0}}, {.name = "c"}},
                                       2, Placement::kGreedyBySize, how);
  EXPECT_THAT(PsOf(placed), ElementsAre(0, 0, 0));
  EXPECT_THAT(placed.load_bytes, ElementsAre(4, 0));
  EXPECT_EQ(placed.imbalance(), 2.0);
  EXPECT_EQ(Place({}, 2, Placement::kGreedyBySize).imbalance(), 0.0);
}

TEST(Placement, LoadReportSaysHowEvenItIs) {
  const PlacementResult placed =
      Place({{.name = "a", .shape = {3}}, {.name = "b", .shape = {1}}}, 2, Placement::kRoundRobin);
  EXPECT_EQ(LoadReport(placed),
            "ps:0 12 bytes (75.0%) in 1 slices\nps:1 4 bytes (25.0%) in 1 slices\nmax/mean 1.500\n");
}

TEST(Placement, Mistakes) {
  using Kind = Partitioning::Kind;
  const int64_t huge = std::numeric_limits<int64_t>::max() / 2;
  const auto message = [](const VariableSpec& variable, int num_ps, const Partitioning& how) {
    const auto placed = PlaceVariables({variable, variable}, num_ps, Placement::kRoundRobin, how);
    EXPECT_EQ(placed.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(placed.status().message());
  };
  const VariableSpec good{.name = "v", .shape = {4}};
  EXPECT_THAT(message(good, 0, {}), HasSubstr("0 parameter servers"));
  EXPECT_THAT(message(good, 1, {.kind = Kind::kFixed, .shards = 0}), HasSubstr("0 shards"));
  EXPECT_THAT(message(good, 1, {.kind = Kind::kMaxBytes, .max_shard_bytes = 0}), HasSubstr("0 bytes"));
  EXPECT_THAT(message(good, 1, {.kind = Kind::kMinSlice, .min_slice_bytes = 0}), HasSubstr("0 bytes"));
  EXPECT_THAT(message({.name = "v", .shape = {-4}}, 1, {}), HasSubstr("\"v\": extent -4"));
  EXPECT_THAT(message({.name = "v", .shape = {huge, huge}}, 1, {}), HasSubstr("more bytes than"));
  EXPECT_THAT(message({.name = "v", .dtype = DType::kBool, .shape = {huge + 2}}, 1, {}), HasSubstr("together"));
  EXPECT_THAT(message({.name = "v", .dtype = DType::kBool, .shape = {huge}}, 1, {.kind = Kind::kFixed, .shards = huge}),
              HasSubstr("slices"));
  EXPECT_THAT(message({.name = "v", .device = "/job:ps/task:1"}, 1, {}), HasSubstr("doesn't exist"));
  EXPECT_THAT(message({.name = "v", .device = "/job:worker"}, 1, {}), HasSubstr("not on job ps"));
  EXPECT_THAT(message({.name = "v", .device = "/job:worker/task:0"}, 1, {}), HasSubstr("use LocalVariables"));
  EXPECT_THAT(message({.name = "v", .device = "nonsense"}, 1, {}), HasSubstr("nonsense"));
}

}  // namespace
}  // namespace muster::placement_test
