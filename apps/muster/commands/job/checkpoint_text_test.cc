#include "apps/muster/commands/job/checkpoint_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace muster::checkpoint_text_test {
namespace {

Manifest OneVariable() {
  Manifest manifest;
  manifest.global_step = 100;
  manifest.saved_at = 1'000'000'000'000;
  manifest.save_id = "a1";
  manifest.rule = {.name = "momentum", .hyperparameters = {{"learning_rate", 0.1}, {"momentum", 0.9}}};
  manifest.parts = {{.file = "p0", .bytes = 7}, {.file = "p1", .bytes = 8}};
  const std::vector<ManifestSlice> slices = {
      {.part = 0, .tensor = "w", .shape = {1, 3}, .row_step = 2},
      {.part = 1, .tensor = "w", .offset = 3, .shape = {1, 3}},
  };
  manifest.variables = {{.name = "w",
                         .shape = {2, 3},
                         .slices = slices,
                         .slots = {{.name = "momentum", .slices = slices},
                                   {.name = "t", .dtype = DType::kInt64, .stride = 16384, .slices = {}}}}};
  manifest.extras = {{"input", "12345"}};
  return manifest;
}

TEST(CheckpointTextTest, AListingSaysWhatIsNewestKeptAndDamaged) {
  const std::vector<ListedCheckpoint> checkpoints = {
      {.name = "model.ckpt-9", .global_step = 9, .damage = absl::DataLossError("no manifest")},
      {.name = "model.ckpt-100",
       .global_step = 100,
       .newest = true,
       .preserved = true,
       .manifest = OneVariable(),
       .bytes = 15},
  };
  EXPECT_EQ(ListingTable(checkpoints),
            "NAME            STEP  TIME                  BYTES  PARTS  RULE      NOTE\n"
            "model.ckpt-9    9                           0                       DAMAGED: no manifest\n"
            "model.ckpt-100  100   2001-09-09T01:46:40Z  15     2      momentum  newest, preserved\n");
  const auto json = nlohmann::json::parse(ListingJson(checkpoints));
  EXPECT_EQ(json[0]["damage"], "no manifest");
  EXPECT_EQ(json[1]["damage"], nullptr);
  EXPECT_EQ(json[1]["parts"], 2);
  EXPECT_EQ(json[1]["newest"], true);
}

TEST(CheckpointTextTest, AManifestSaysWhereEachSliceLies) {
  EXPECT_EQ(ManifestText(OneVariable(), "model.ckpt-100"),
            "model.ckpt-100\n"
            "global step  100\n"
            "saved at     2001-09-09T01:46:40Z\n"
            "rule         momentum learning_rate=0.1 momentum=0.9\n"
            "parts\n"
            "  0  p0  7 bytes\n"
            "  1  p1  8 bytes\n"
            "variables\n"
            "  w             float32  [2,3]          trainable  part 0@0[1,3] every 2th row part 1@3[1,3]\n"
            "    w/momentum  float32  [2,3]          slot       part 0@0[1,3] every 2th row part 1@3[1,3]\n"
            "    w/t         int64    one per 16384  slot\n"
            "extras\n"
            "  input  5 characters\n");
  const auto json = nlohmann::json::parse(ManifestJson(OneVariable(), "model.ckpt-100"));
  EXPECT_EQ(json["path"], "model.ckpt-100");
  EXPECT_EQ(json["rule"]["hyperparameters"]["momentum"], 0.9);
  EXPECT_EQ(json["variables"][0]["slices"][0]["row_step"], 2);
  EXPECT_FALSE(json["variables"][0]["slices"][1].contains("row_step"));
  EXPECT_EQ(json["extras"]["input"], 5);
}

TEST(CheckpointTextTest, StatisticsInJsonHaveInfinitiesAsText) {
  const std::vector<NamedStatistics> tensors = {
      {"w",
       {.values = 4, .nans = 1, .min = -1, .max = std::numeric_limits<double>::infinity(), .mean = 0.5, .norm = 2}}};
  EXPECT_EQ(StatisticsTable(tensors),
            "NAME  VALUES  MIN  MAX  MEAN  NORM  NAN\n"
            "w     4       -1   inf  0.5   2     1\n");
  EXPECT_EQ(StatisticsJson(tensors),
            R"([{"name":"w","values":4,"min":-1.0,"max":"inf","mean":0.5,"norm":2.0,"nans":1}])"
            "\n");
}

}  // namespace
}  // namespace muster::checkpoint_text_test
