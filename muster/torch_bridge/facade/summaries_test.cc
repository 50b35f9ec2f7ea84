#include "muster/torch_bridge/facade/summaries.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "muster/summary/step_summaries.h"
#include "muster/summary/summary_values.h"
#include "muster/train/threads/error.h"

namespace muster::summaries_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Pair;

// A step whose summaries are wanted.
class SummariesTest : public ::testing::Test {
 protected:
  std::string Image(const std::string& tag, int height, int width, int channels, const std::vector<uint8_t>& pixels) {
    std::string summary;
    AppendImage(summary, tag, *EncodePng({height, width, channels, pixels}));
    return summary;
  }

  StepSummaries summaries_;
  const StepSummaries::Scope step_{summaries_, true};
};

// Returns the text of the Error that `call` throws.
template <typename Call>
std::string ErrorOf(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SummariesOutsideAStepTest, EveryCallIsAnErrorThatTeaches) {
  const torch::Tensor one = torch::ones({1});
  const auto outside = HasSubstr("was called outside a step");
  EXPECT_THAT(ErrorOf([&] { summary::Scalar("loss", one); }), AllOf(HasSubstr("summary::Scalar(\"loss\")"), outside));
  EXPECT_THAT(ErrorOf([] { summary::Scalar("loss", 1); }), outside);
  EXPECT_THAT(ErrorOf([&] { summary::Histogram("w", one); }), outside);
  EXPECT_THAT(ErrorOf([&] { summary::Image("i", one, summary::ImageLayout::kNHWC); }), outside);
  EXPECT_THAT(ErrorOf([] { summary::Text("t", "x"); }), outside);
  EXPECT_THAT(ErrorOf([] { summary::HParams({}); }), outside);
  EXPECT_THAT(ErrorOf([] { summary::Graph(torch::nn::LinearImpl(1, 1)); }), outside);
  EXPECT_THAT(ErrorOf([] { summary::Wanted(); }), outside);
  EXPECT_THAT(ErrorOf([] { summary::MergeAll(); }), outside);
}

TEST(SummariesNotWantedTest, OnlyScalarsAreKept) {
  StepSummaries summaries;
  const StepSummaries::Scope step(summaries, false);
  EXPECT_FALSE(summary::Wanted());
  summary::Scalar("loss", torch::ones({}));
  summary::Histogram("w", torch::full({2}, NAN));  // would be an error
  summary::Image("i", torch::ones({1}), summary::ImageLayout::kNHWC);
  summary::Text("t", "x");
  summary::HParams({{"rate", 1}});
  summary::Graph(torch::nn::LinearImpl(1, 1));
  EXPECT_THAT(summaries.scalars(), ElementsAre(Pair("loss", 1)));
  EXPECT_THAT(summaries.EncodedOthers(), IsEmpty());
  EXPECT_THAT(summaries.hparams(), IsEmpty());
  EXPECT_THAT(summaries.graph(), IsEmpty());
}

TEST_F(SummariesTest, ScalarsOfAnyTypeWithOneElement) {
  summary::Scalar("loss", torch::full({1, 1}, 0.5, torch::requires_grad()));
  summary::Scalar("count", torch::full({}, 7, torch::kLong));
  summary::Scalar("flag", torch::ones({}, torch::kBool));
  summary::Scalar("rate", 0.25);
  EXPECT_THAT(summaries_.scalars(),
              ElementsAre(Pair("loss", 0.5), Pair("count", 7), Pair("flag", 1), Pair("rate", 0.25)));
  EXPECT_THAT(ErrorOf([] { summary::Scalar("two", torch::ones({2})); }),
              HasSubstr("summary scalar two: the tensor has 2 elements, not 1"));
  EXPECT_THAT(ErrorOf([] { summary::Scalar("none", torch::Tensor()); }), HasSubstr("has 0 elements"));
  std::string expected;
  AppendScalar(expected, "loss", 0.5f);
  AppendScalar(expected, "count", 7);
  AppendScalar(expected, "flag", 1);
  AppendScalar(expected, "rate", 0.25f);
  EXPECT_EQ(summary::MergeAll(), expected);
}

TEST_F(SummariesTest, AHistogramOfATensorThatLiesAnyhow) {
  const torch::Tensor values = torch::arange(6, torch::kDouble).view({2, 3}).t();
  summary::Histogram("w", values);
  HistogramBuilder histogram;
  const float plain[] = {0, 1, 2, 3, 4, 5};
  histogram.Add(std::span<const float>(plain));
  std::string expected;
  AppendHistogram(expected, "w", histogram.Build());
  EXPECT_EQ(summary::MergeAll(), expected);
  EXPECT_THAT(ErrorOf([] { summary::Histogram("n", torch::full({2}, NAN)); }),
              HasSubstr("Nan in summary histogram for: n"));
}

TEST_F(SummariesTest, ImagesInBothLayouts) {
  // Two pictures of 2 x 3 in two channels; element = 100 n + 10 (3 h + w) + c.
  std::vector<uint8_t> bytes;
  for (int n = 0; n < 2; ++n)
    for (int at = 0; at < 6; ++at)
      for (int c = 0; c < 2; ++c) bytes.push_back(static_cast<uint8_t>(100 * n + 10 * at + c));
  const torch::Tensor nhwc = torch::from_blob(bytes.data(), {2, 2, 3, 2}, torch::kUInt8);
  const std::vector<uint8_t> first(bytes.begin(), bytes.begin() + 12), second(bytes.begin() + 12, bytes.end());
  summary::Image("a", nhwc, summary::ImageLayout::kNHWC);
  EXPECT_EQ(summary::MergeAll(), Image("a/image/0", 2, 3, 2, first) + Image("a/image/1", 2, 3, 2, second));
  const StepSummaries::Scope next(summaries_, true);
  summary::Image("b", nhwc.permute({0, 3, 1, 2}), summary::ImageLayout::kNCHW, /*max_outputs=*/1);
  EXPECT_EQ(summary::MergeAll(), Image("b/image", 2, 3, 2, first));
}

TEST_F(SummariesTest, OfManyImagesThree) {
  summary::Image("a", torch::zeros({5, 1, 1, 1}), summary::ImageLayout::kNHWC);
  std::string expected;
  for (const char* tag : {"a/image/0", "a/image/1", "a/image/2"}) expected += Image(tag, 1, 1, 1, {0});
  EXPECT_EQ(summary::MergeAll(), expected);
}

TEST_F(SummariesTest, FloatsFromZeroToOneAreCutOff) {
  const torch::Tensor images =
      torch::tensor({-1.0, 0.0, 0.5, 1.0, 7.0, std::numeric_limits<double>::quiet_NaN()}).view({1, 1, 6, 1});
  summary::Image("a", images, summary::ImageLayout::kNHWC, 1);
  EXPECT_EQ(summary::MergeAll(), Image("a/image", 1, 6, 1, {0, 0, 128, 255, 255, 0}));
}

TEST_F(SummariesTest, WhatIsNoImageIsNamed) {
  const auto error = [](const torch::Tensor& images, int max_outputs = 3) {
    return ErrorOf([&] { summary::Image("a", images, summary::ImageLayout::kNHWC, max_outputs); });
  };
  EXPECT_THAT(error(torch::zeros({2, 3, 1})), HasSubstr("the images are Float [2, 3, 1]"));
  EXPECT_THAT(error(torch::zeros({1, 2, 3, 1}, torch::kLong)), HasSubstr("accepted: Byte (uint8), or floating point"));
  EXPECT_THAT(error(torch::zeros({1, 1, 28, 28})), HasSubstr("an image has 28 channels"));
  EXPECT_THAT(error(torch::zeros({1, 2, 3, 1}), 0), HasSubstr("max_outputs is 0"));
}

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("norm", torch::nn::BatchNorm1d(2));
    register_module("layers", torch::nn::Sequential(torch::nn::ReLU(), torch::nn::Linear(2, 3)));
    register_parameter("scale", torch::ones({}));
  }
};

TEST_F(SummariesTest, TheGraphHasModulesAndTheirTensors) {
  summary::Graph(NetImpl());
  const auto leaf = [](const std::string& name, const std::string& op, std::vector<int64_t> shape,
                       const std::string& dtype = "Float") {
    return GraphNode{.name = name, .op = op, .shape = std::move(shape), .attributes = {{"dtype", dtype}}};
  };
  const std::string net = NetImpl().name();
  const std::string kind = net.substr(0, net.size() - 4);
  const std::string norm = kind + "/norm", linear = kind + "/layers/1";
  const std::vector<GraphNode> nodes = {
      {.name = kind, .op = kind, .inputs = {kind + "/scale"}, .attributes = {{"parameters", "1"}}},
      leaf(kind + "/scale", "Parameter", {}),
      {.name = norm,
       .op = "BatchNorm1d",
       .inputs = {norm + "/weight", norm + "/bias", norm + "/running_mean", norm + "/running_var",
                  norm + "/num_batches_tracked"},
       .attributes = {{"parameters", "4"}}},
      leaf(norm + "/weight", "Parameter", {2}),
      leaf(norm + "/bias", "Parameter", {2}),
      leaf(norm + "/running_mean", "Buffer", {2}),
      leaf(norm + "/running_var", "Buffer", {2}),
      leaf(norm + "/num_batches_tracked", "Buffer", {}, "Long"),
      {.name = kind + "/layers", .op = "Sequential"},
      {.name = kind + "/layers/0", .op = "ReLU"},
      {.name = linear,
       .op = "Linear",
       .inputs = {linear + "/weight", linear + "/bias"},
       .attributes = {{"parameters", "9"}}},
      leaf(linear + "/weight", "Parameter", {3, 2}),
      leaf(linear + "/bias", "Parameter", {3})};
  EXPECT_EQ(summaries_.graph(), EncodeGraph(nodes));
}

TEST_F(SummariesTest, TextAndHParams) {
  summary::Text("notes", "**x**");
  std::string expected;
  AppendText(expected, "notes", "**x**");
  EXPECT_EQ(summary::MergeAll(), expected);
  summary::HParams({{"rate", 0.5}}, {"loss"});
  expected.clear();
  const HParam rate("rate", 0.5);
  const std::string loss = "loss";
  AppendHParams(expected, {&rate, 1}, {&loss, 1});
  EXPECT_EQ(summaries_.hparams(), expected);
}

}  // namespace
}  // namespace muster::summaries_test
