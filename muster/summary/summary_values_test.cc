#include "muster/summary/summary_values.h"

#include <gtest/gtest.h>

#include "muster/summary/graph_def.h"
#include "muster/summary/hparams.h"
#include "muster/summary/testing/plain_protobuf.h"

namespace muster::summary_values_test {
namespace {

// Summary { value { … } }
std::string Value(const std::string& fields) { return BytesField(1, fields); }
std::string Plugin(const std::string& name, const std::string& content = "") {
  return BytesField(9, BytesField(1, BytesField(1, name) + (content.empty() ? "" : BytesField(2, content))));
}
// DT_FLOAT, shape [1], 0: the tensor in TensorFlow's hparams summaries.
std::string NullTensor() {
  return BytesField(
      8, NumberField(1, 1) + BytesField(2, BytesField(2, NumberField(1, 1))) + BytesField(5, RawBytes(0.0f)));
}
std::string HParamsValue(const std::string& tag, const std::string& content) {
  return Value(BytesField(1, tag) + NullTensor() + Plugin("hparams", content));
}

TEST(SummaryValuesTest, Scalar) {
  std::string summary = "before";
  AppendScalar(summary, "loss", 0.5f);
  EXPECT_EQ(summary, "before" + Value(BytesField(1, "loss") + FloatField(2, 0.5f)));
}

TEST(SummaryValuesTest, Histogram) {
  const ValueHistogram histogram = {
      .min = -1, .max = 2, .num = 3, .sum = 4, .sum_squares = 5, .bucket_limit = {-1, 0, 2.5}, .bucket = {1, 0, 2}};
  std::string summary;
  AppendHistogram(summary, "weights", histogram);
  EXPECT_EQ(summary,
            Value(BytesField(1, "weights") +
                  BytesField(5, DoubleField(1, -1) + DoubleField(2, 2) + DoubleField(3, 3) + DoubleField(4, 4) +
                                    DoubleField(5, 5) + PackedDoubles(6, {-1, 0, 2.5}) + PackedDoubles(7, {1, 0, 2}))));
}

TEST(SummaryValuesTest, Image) {
  std::string summary;
  AppendImage(summary, "digits/image/0", {.height = 28, .width = 300, .channels = 3, .bytes = "PNG"});
  EXPECT_EQ(summary,
            Value(BytesField(1, "digits/image/0") +
                  BytesField(4, NumberField(1, 28) + NumberField(2, 300) + NumberField(3, 3) + BytesField(4, "PNG"))));
}

TEST(SummaryValuesTest, Text) {
  std::string summary;
  AppendText(summary, "notes", "**bold**");
  // A tensor of DT_STRING without dimensions.
  EXPECT_EQ(summary,
            Value(BytesField(1, "notes") +
                  BytesField(8, NumberField(1, 7) + BytesField(2, "") + BytesField(8, "**bold**")) + Plugin("text")));
}

TEST(SummaryValuesTest, HParams) {
  const HParam hparams[] = {{"rate", 0.5}, {"layers", 3}, {"nesterov", true}, {"rule", "adam"}};
  const std::string metrics[] = {"loss"};
  std::string summary;
  AppendHParams(summary, hparams, metrics);
  const auto info = [](const std::string& name, int type) {
    return BytesField(4, BytesField(1, name) + NumberField(4, type));
  };
  const auto value = [](const std::string& name, const std::string& encoded) {
    return BytesField(1, BytesField(1, name) + BytesField(2, encoded));
  };
  // FLOAT64 is 3, BOOL 2, STRING 1.
  const std::string experiment = info("rate", 3) + info("layers", 3) + info("nesterov", 2) + info("rule", 1) +
                                 BytesField(5, BytesField(1, BytesField(2, "loss")));
  const std::string start = value("rate", DoubleField(2, 0.5)) + value("layers", DoubleField(2, 3)) +
                            value("nesterov", NumberField(4, 1)) + value("rule", BytesField(3, "adam"));
  EXPECT_EQ(summary, HParamsValue("_hparams_/experiment", BytesField(2, experiment)) +
                         HParamsValue("_hparams_/session_start_info", BytesField(3, start)));
}

TEST(SummaryValuesTest, TheEndOfARunWithHParams) {
  std::string summary;
  AppendHParamsEnd(summary, absl::FromUnixMillis(1500));
  EXPECT_EQ(summary,
            HParamsValue("_hparams_/session_end_info", BytesField(4, NumberField(1, 1) + DoubleField(2, 1.5))));
}

TEST(SummaryValuesTest, WhatIsNoSummaryIsToldFromOne) {
  std::string summary;
  EXPECT_TRUE(CheckSummary(summary, "the bytes").ok());
  AppendScalar(summary, "loss", 0.5f);
  AppendText(summary, "text", "words");
  AppendHParamsEnd(summary, absl::FromUnixMillis(1500));
  EXPECT_TRUE(CheckSummary(summary, "the bytes").ok());
  for (const std::string& bad : {std::string("loss = 0.5"), summary.substr(0, summary.size() - 1), summary + "x",
                                 NumberField(1, 1), BytesField(2, "loss"), BytesField(1, "not fields")}) {
    const absl::Status status = CheckSummary(bad, "the summary_op's bytes");
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_EQ(status.message().substr(0, 38), "the summary_op's bytes are no Summary:");
  }
}

TEST(GraphDefTest, NodesWithShapesAndAttributes) {
  const GraphNode nodes[] = {{.name = "Net/fc", .op = "Linear", .inputs = {"Net/fc/w"}, .attributes = {{"k", "v"}}},
                             {.name = "Net/fc/w", .op = "Parameter", .shape = {{2, 300}}},
                             {.name = "s", .op = "Buffer", .shape = {{}}}};
  const auto attribute = [](const std::string& key, const std::string& value) {
    return BytesField(5, BytesField(1, key) + BytesField(2, value));
  };
  const auto shape = [&](const std::string& encoded) {
    return attribute("shape", BytesField(7, encoded)) +
           attribute("_output_shapes", BytesField(1, BytesField(7, encoded)));
  };
  const std::string dims = BytesField(2, NumberField(1, 2)) + BytesField(2, NumberField(1, 300));
  EXPECT_EQ(EncodeGraph(nodes),
            BytesField(1, BytesField(1, "Net/fc") + BytesField(2, "Linear") + BytesField(3, "Net/fc/w") +
                              attribute("k", BytesField(2, "v"))) +
                BytesField(1, BytesField(1, "Net/fc/w") + BytesField(2, "Parameter") + shape(dims)) +
                BytesField(1, BytesField(1, "s") + BytesField(2, "Buffer") + shape("")) +
                BytesField(4, NumberField(1, 22)));
}

}  // namespace
}  // namespace muster::summary_values_test
