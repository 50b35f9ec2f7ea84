#include "muster/cluster/placement/row_table.h"

#include <gmock/gmock.h>

#include <set>
#include <utility>

#include "muster/cluster/placement/placement.h"

namespace muster::row_table_test {
namespace {

using ::testing::HasSubstr;

// The rule of tf.nn.embedding_lookup, as tensorflow/python/ops/embedding_ops.py writes it.
RowSplit::Place TensorFlowPlace(RowPartition partition, int64_t rows, int64_t np, int64_t id) {
  if (partition == RowPartition::kMod) return {id % np, id / np};
  const int64_t ids_per_partition = rows / np;
  const int64_t extras = rows % np;
  int64_t assignment = id / (ids_per_partition + 1);
  if (ids_per_partition > 0) assignment = std::max(assignment, (id - extras) / ids_per_partition);
  const int64_t in = assignment < extras ? id % (ids_per_partition + 1) : (id - extras) % ids_per_partition;
  return {assignment, in};
}

TEST(RowSplit, IsTensorFlows) {
  for (const RowPartition partition : {RowPartition::kMod, RowPartition::kDiv})
    for (int64_t rows : {1, 2, 5, 10, 97, 100})
      for (int64_t shards : {1, 2, 3, 7, 100, 120}) {
        const RowSplit split(partition, rows, shards);
        std::set<std::pair<int64_t, int64_t>> seen;
        for (int64_t row = 0; row < rows; ++row) {
          const RowSplit::Place place = split.PlaceOf(row);
          const RowSplit::Place wanted = TensorFlowPlace(partition, rows, shards, row);
          ASSERT_EQ(place.shard, wanted.shard) << row << " of " << rows << " on " << shards;
          ASSERT_EQ(place.row, wanted.row) << row << " of " << rows << " on " << shards;
          ASSERT_LT(place.row, split.RowsOf(place.shard));
          ASSERT_EQ(split.FirstRowOf(place.shard) + place.row * split.Step(), row);
          ASSERT_TRUE(seen.insert({place.shard, place.row}).second);
        }
        int64_t sum = 0;
        for (int64_t shard = 0; shard < shards; ++shard) sum += split.RowsOf(shard);
        EXPECT_EQ(sum, rows);
      }
}

TEST(RowTablePlacement, HasASliceOnEveryPsWhateverTheStrategy) {
  const VariableSpec table = {.name = "table", .shape = {10, 4}, .kind = VariableKind::kRows};
  const auto placed = PlaceVariables({{.name = "a", .shape = {3}}, table, {.name = "b", .shape = {3}}}, 3,
                                     Placement::kRoundRobin, {.kind = Partitioning::Kind::kFixed, .shards = 2})
                          .value();
  std::vector<int> ps;
  for (const PlacedSlice& slice : placed.slices) ps.push_back(slice.ps);
  EXPECT_THAT(ps, ::testing::ElementsAre(0, 1, 0, 1, 2, 2, 0));  // the table doesn't advance the round robin
  const PlacedSlice& second = placed.slices[3];
  EXPECT_EQ(second.offset, 4);
  EXPECT_EQ(second.row_step, 3);
  EXPECT_THAT(second.shape, ::testing::ElementsAre(3, 4));
}

TEST(RowTablePlacement, PinnedToAPsItLiesThereWhole) {
  const VariableSpec table = {
      .name = "table", .shape = {10, 4}, .kind = VariableKind::kRows, .device = "/job:ps/task:1"};
  const auto placed = PlaceVariables({table}, 3, Placement::kRoundRobin, {}).value();
  ASSERT_EQ(placed.slices.size(), 1);
  EXPECT_EQ(placed.slices[0].ps, 1);
  EXPECT_EQ(placed.slices[0].row_step, 1);
  EXPECT_EQ(placed.slices[0].elements, 40);
}

TEST(RowTablePlacement, AScalarIsNone) {
  const auto placed = PlaceVariables({{.name = "table", .kind = VariableKind::kRows}}, 2, Placement::kRoundRobin, {});
  EXPECT_EQ(placed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(placed.status().message()), HasSubstr("no table of rows"));
}

}  // namespace
}  // namespace muster::row_table_test
