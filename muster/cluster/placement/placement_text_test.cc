#include "muster/cluster/placement/placement_text.h"

#include <gmock/gmock.h>

namespace muster::placement_text_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

TEST(PlacementText, Partitionings) {
  using Kind = Partitioning::Kind;
  EXPECT_EQ(ParsePartitioning("none")->kind, Kind::kNone);
  EXPECT_EQ(ParsePartitioning("fixed:3")->shards, 3);
  EXPECT_EQ(ParsePartitioning("max_bytes:100")->max_shard_bytes, 100);
  EXPECT_EQ(ParsePartitioning("max_bytes:100")->max_shards, 0);
  EXPECT_EQ(ParsePartitioning("max_bytes:100,max_shards:4")->max_shards, 4);
  const Partitioning min_slice = ParsePartitioning("min_slice:64,max_partitions:5").value();
  EXPECT_EQ(min_slice.kind, Kind::kMinSlice);
  EXPECT_EQ(min_slice.min_slice_bytes, 64);
  EXPECT_EQ(min_slice.max_partitions, 5);
  for (const char* text :
       {"", "fixed", "fixed:", "fixed:0", "fixed:-1", "fixed:1.5", "fixed:x", "fixed:1,max_shards:2", "fixed:1,",
        "max_bytes:1,min_slice:2", "max_bytes:1,max_shards:2,max_shards:3", "min_slice:64",
        "max_partitions:5,min_slice:64", "nonsense:1", "fixed:99999999999999999999"}) {
    const auto partitioning = ParsePartitioning(text);
    EXPECT_THAT(std::string(partitioning.status().message()), HasSubstr("accepted: none, fixed:N")) << text;
  }
}

TEST(PlacementText, Strategies) {
  EXPECT_EQ(ParsePlacement("round_robin").value(), Placement::kRoundRobin);
  EXPECT_EQ(ParsePlacement("greedy").value(), Placement::kGreedyBySize);
  EXPECT_EQ(ParsePlacement("greedy_sorted").value(), Placement::kGreedySorted);
  EXPECT_THAT(std::string(ParsePlacement("best").status().message()),
              AllOf(HasSubstr("\"best\""), HasSubstr("round_robin")));
}

TEST(PlacementText, VariablesAndResult) {
  const auto variables =
      VariablesFromJson(R"([{"name":"w","shape":[2,3],"dtype":"float64"},{"name":"s","shape":[],"dtype":"bool"}])", "f")
          .value();
  const auto placed = PlaceVariables(variables, 2, Placement::kRoundRobin, {});
  EXPECT_EQ(
      PlacementToJson(variables, *placed),
      R"({"placement":[{"name":"w","shard":0,"ps":0,"bytes":48},{"name":"s","shard":0,"ps":1,"bytes":1}],"load_bytes":[48,1]})");
}

TEST(PlacementText, MistakesNameTheKeyAndTheValue) {
  const auto message = [](const char* text) {
    const auto variables = VariablesFromJson(text, "model.json");
    EXPECT_EQ(variables.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(variables.status().message()), AllOf(HasSubstr("model.json"), HasSubstr("accepted")));
    return std::string(variables.status().message());
  };
  EXPECT_THAT(message(""), HasSubstr("not JSON"));
  EXPECT_THAT(message("{}"), HasSubstr("an object"));
  EXPECT_THAT(message("[5]"), HasSubstr("[0]: 5"));
  EXPECT_THAT(message(R"([{"shape":[],"dtype":"bool"}])"), HasSubstr("no \"name\""));
  EXPECT_THAT(message(R"([{"name":"","shape":[],"dtype":"bool"}])"), HasSubstr("[0].name: \"\""));
  EXPECT_THAT(message(R"([{"name":"a","shape":3,"dtype":"bool"}])"), HasSubstr("[0].shape: 3"));
  EXPECT_THAT(message(R"([{"name":"a","shape":[1.5],"dtype":"bool"}])"), HasSubstr("[0].shape: 1.5"));
  EXPECT_THAT(message(R"([{"name":"a","shape":[-1],"dtype":"bool"}])"), HasSubstr("[0].shape: -1"));
  EXPECT_THAT(message(R"([{"name":"a","shape":[18446744073709551615],"dtype":"bool"}])"),
              HasSubstr("18446744073709551615"));
  EXPECT_THAT(message(R"([{"name":"a","shape":[],"dtype":"float"}])"), HasSubstr("'float'"));
  EXPECT_THAT(message(R"([{"name":"a","shape":[],"dtype":5}])"), HasSubstr("'5'"));
  EXPECT_THAT(message(R"([{"name":"a","shape":[],"dtype":"bool","extra":1}])"), HasSubstr("unknown key \"extra\""));
  EXPECT_THAT(message(R"([{"name":"a","shape":[],"dtype":"bool"},{"name":"a","shape":[],"dtype":"bool"}])"),
              HasSubstr("[1].name: \"a\" is there twice"));
}

}  // namespace
}  // namespace muster::placement_text_test
