#include "muster/checkpoint/manifest.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "muster/base/bytes.h"
#include "muster/base/crc32c.h"

namespace muster::manifest_test {
namespace {

using ::testing::HasSubstr;

Manifest Example() {
  Manifest manifest = {.global_step = 100,
                       .save_id = "a1",
                       .job = "job-7",
                       .lease_epoch = 3,
                       .writer = "ps:0",
                       .muster_version = "0.1.0",
                       .rule = {.name = "adam", .hyperparameters = {{"learning_rate", 0.001}, {"epsilon", 1e-8}}},
                       .parts = {{"p0", 1234, 0xdeadbeef}, {"p1", 99, 0}},
                       .extras = {{"input", "epoch 3 \"x\" \xc3\xa4"}}};
  manifest.variables = {
      {.name = "w",
       .shape = {5, 2},
       .slices = {{0, "w/0", 0, {3, 2}}, {1, "w/1", 6, {2, 2}}},
       .slots = {{.name = "adam_m", .slices = {{0, "w/0/m", 0, {3, 2}}, {1, "w/1/m", 6, {2, 2}}}},
                 {.name = "t", .dtype = DType::kInt64, .stride = 4, .slices = {{0, "w/t", 0, {5, 2}}}}}},
      {.name = "s", .dtype = DType::kFloat64, .kind = "frozen", .slices = {{1, "s", 0, {}}}},
      {.name = "none", .shape = {0, 3}, .kind = "buffer", .slices = {}}};
  return manifest;
}

// Changes the text and gives it the right checksum.
std::string Resealed(std::string text, const std::string& from, const std::string& to) {
  EXPECT_THAT(text, HasSubstr(from));
  text = absl::StrReplaceAll(text, {{from, to}});
  const std::string covered = text.substr(21);
  return absl::StrFormat("{\"crc32c\":\"%08x\",%s", Crc32c(AsBytes(covered.data(), covered.size())), covered);
}

std::string Refusal(const std::string& text) {
  const auto manifest = ParseManifest(text, "d/m.json");
  EXPECT_TRUE(absl::IsDataLoss(manifest.status())) << manifest.status();
  EXPECT_THAT(std::string(manifest.status().message()), HasSubstr("d/m.json is damaged: "));
  return std::string(manifest.status().message());
}

TEST(ManifestTest, ComesBackAsItWas) {
  const Manifest manifest = Example();
  ASSERT_TRUE(ValidateManifest(manifest).ok()) << ValidateManifest(manifest);
  const auto read = ParseManifest(SerializeManifest(manifest), "m").value();
  EXPECT_EQ(read, manifest);
  EXPECT_EQ(SerializeManifest(read), SerializeManifest(manifest));
  EXPECT_EQ(read.Find("s")->dtype, DType::kFloat64);
  EXPECT_EQ(read.Find("x"), nullptr);
}

TEST(ManifestTest, IsJsonWithTheKeysOfTheFormatDescription) {
  const auto root = nlohmann::json::parse(SerializeManifest(Example()));
  EXPECT_EQ(root["format"], "muster checkpoint");
  EXPECT_EQ(root["format_version"], 1);
  EXPECT_EQ(root["global_step"], 100);
  EXPECT_EQ(root["parts"][0]["crc32c"], 0xdeadbeef);
  EXPECT_EQ(root["variables"][0]["slices"][1]["offset"], 6);
  EXPECT_EQ(root["variables"][0]["slots"][1]["stride"], 4);
  EXPECT_EQ(root["variables"][0]["dtype"], "float32");
  EXPECT_EQ(root["rule"]["hyperparameters"]["learning_rate"], 0.001);
}

TEST(ManifestTest, AnyDamagedByteIsFound) {
  const std::string good = SerializeManifest(Example());
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int mask : {0x01, 0x20, 0x80}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ mask);
      EXPECT_TRUE(absl::IsDataLoss(ParseManifest(bad, "m").status())) << at;
    }
    EXPECT_TRUE(absl::IsDataLoss(ParseManifest(good.substr(0, at), "m").status())) << "cut at " << at;
  }
  EXPECT_TRUE(absl::IsDataLoss(ParseManifest(good + " ", "m").status()));
}

TEST(ManifestTest, AWrongOrMissingKeyIsNamed) {
  const std::string good = SerializeManifest(Example());
  EXPECT_THAT(Refusal(Resealed(good, "\"global_step\": 100", "\"global_step\": \"100\"")),
              HasSubstr("global_step is not a number"));
  EXPECT_THAT(Refusal(Resealed(good, "\"global_step\": 100", "\"global_step\": -1")), HasSubstr("global_step is -1"));
  EXPECT_THAT(Refusal(Resealed(good, "\"global_step\": 100", "\"global_step\": 1.5")), HasSubstr("global_step is 1.5"));
  EXPECT_THAT(Refusal(Resealed(good, "\"global_step\"", "\"step\"")), HasSubstr("global_step is missing"));
  EXPECT_THAT(Refusal(Resealed(good, "\"file\": \"p1\"", "\"file\": 1")), HasSubstr("parts[1].file is not a string"));
  EXPECT_THAT(Refusal(Resealed(good, "\"dtype\": \"float64\"", "\"dtype\": \"float65\"")),
              HasSubstr("variables[1].unknown dtype 'float65'; accepted: float32"));
  EXPECT_THAT(Refusal(Resealed(good, "\"offset\": 6", "\"offset\": 5")),
              HasSubstr("variable 'w': a slice begins at 5 where 6 is next"));
  EXPECT_THAT(Refusal(Resealed(good, "\"muster checkpoint\"", "\"other\"")), HasSubstr("format is 'other'"));
  EXPECT_THAT(Refusal(Resealed(good, "\"format\"", "\"save_id\"")), HasSubstr("key 'save_id' is given twice"));
  EXPECT_THAT(Refusal("{}"), HasSubstr("doesn't begin with"));
}

TEST(ManifestTest, ANewerVersionIsNotDamageAndUnknownKeysAreIgnored) {
  const std::string good = SerializeManifest(Example());
  const auto newer = ParseManifest(Resealed(good, "\"format_version\": 1", "\"format_version\": 3"), "d/m.json");
  EXPECT_TRUE(absl::IsUnimplemented(newer.status()));
  EXPECT_THAT(std::string(newer.status().message()), HasSubstr("d/m.json: format_version 3"));
  const auto more = ParseManifest(Resealed(good, "\"format_version\": 1", "\"format_version\": 1, \"more\": []"), "m");
  EXPECT_TRUE(more.ok()) << more.status();
}

// Variable w, of 5 rows, in slices of every second row.
Manifest ExampleByRows() {
  Manifest manifest = Example();
  ManifestVariable& w = manifest.variables[0];
  w.kind = "rows";
  w.slots.clear();
  w.slices[1].offset = 2;
  for (ManifestSlice& slice : w.slices) slice.row_step = 2;
  return manifest;
}

TEST(ManifestTest, SlicesOfEveryNthRowRoundTripAsTheSecondVersion) {
  const Manifest manifest = ExampleByRows();
  const std::string text = SerializeManifest(manifest);
  EXPECT_THAT(text, HasSubstr("\"format_version\": 2"));
  const auto parsed = ParseManifest(text, "m").value();
  EXPECT_EQ(parsed, manifest);
}

TEST(ManifestTest, SlicesOfEveryNthRowAreTogetherTheWhole) {
  const auto refusal = [](const std::function<void(ManifestVariable&)>& change) {
    Manifest manifest = ExampleByRows();
    change(manifest.variables[0]);
    return std::string(ValidateManifest(manifest).message());
  };
  EXPECT_EQ(refusal([](ManifestVariable&) {}), "");
  EXPECT_THAT(refusal([](ManifestVariable& w) { w.slices[1].row_step = 3; }),
              HasSubstr("slice 1 is not every 2th row"));
  EXPECT_THAT(refusal([](ManifestVariable& w) { w.slices[1].offset = 3; }), HasSubstr("slice 1 is not every 2th row"));
  EXPECT_THAT(refusal([](ManifestVariable& w) { w.slices[0].row_step = -2; }), HasSubstr("slice 0"));
  EXPECT_THAT(refusal([](ManifestVariable& w) { w.slices.pop_back(); }), HasSubstr("slice 0"));
  EXPECT_THAT(refusal([](ManifestVariable& w) { w.shape = {5, 0}; }), HasSubstr("rows without elements"));
}

TEST(ManifestTest, ValidationNamesTheMistake) {
  const auto refusal = [](const std::function<void(Manifest&)>& change) {
    Manifest manifest = Example();
    change(manifest);
    return std::string(ValidateManifest(manifest).message());
  };
  EXPECT_EQ(refusal([](Manifest&) {}), "");
  EXPECT_THAT(refusal([](Manifest& m) { m.global_step = -1; }), HasSubstr("global_step -1"));
  EXPECT_THAT(refusal([](Manifest& m) { m.save_id = std::string("A/1"); }), HasSubstr("save_id 'A/1'"));
  EXPECT_THAT(refusal([](Manifest& m) { m.parts[0].file = std::string("../x"); }),
              HasSubstr("'../x' is not the name of a file"));
  EXPECT_THAT(refusal([](Manifest& m) { m.parts[1].file = std::string("p0"); }), HasSubstr("part 'p0' is given twice"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[1].name = std::string("w"); }),
              HasSubstr("variable 'w' is given twice"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[1].name = std::string(""); }), HasSubstr("without a name"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[1].kind = std::string("fixed"); }),
              HasSubstr("kind 'fixed'; accepted: train"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[0].shape = {5, -2}; }), HasSubstr("extent -2"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[0].shape = {6, 2}; }), HasSubstr("have 10 of its 12 elements"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[0].shape = {4, 2}; }), HasSubstr("more than its 8 elements"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[0].slices[1].part = 2; }), HasSubstr("part 2 of 2"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[0].slices[1].part = -1; }), HasSubstr("part -1 of 2"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[0].slices[1].tensor = std::string(""); }),
              HasSubstr("name of its tensor"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[1].slices.clear(); }),
              HasSubstr("'s': its slices have 0 of its 1"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[0].slots[1].name = std::string("adam_m"); }),
              HasSubstr("given twice"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[0].slots[1].stride = 0; }), HasSubstr("slot 't': stride 0"));
  EXPECT_THAT(refusal([](Manifest& m) { m.variables[0].slots[0].slices.pop_back(); }), HasSubstr("slot 'adam_m': its"));
  EXPECT_THAT(refusal([](Manifest& m) { m.extras["rng"] = std::string("\xff"); }),
              HasSubstr("extra 'rng' isn't UTF-8"));
  EXPECT_THAT(refusal([](Manifest& m) { m.rule.hyperparameters["x"] = std::numeric_limits<double>::infinity(); }),
              HasSubstr("hyperparameter 'x' is inf"));
}

}  // namespace
}  // namespace muster::manifest_test
