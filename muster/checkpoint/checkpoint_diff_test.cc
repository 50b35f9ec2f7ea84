#include "muster/checkpoint/checkpoint_diff.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "muster/base/files/memory_file_system.h"
#include "muster/checkpoint/tensor_statistics.h"
#include "muster/checkpoint/testing/checkpoint_test_data.h"

namespace muster::checkpoint_diff_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

// The content of one-part checkpoints: float "w" of 2 × 3 with slots "m" and "t" (a counter per 4 elements), int64 "n"
// of 2.
struct Content {
  std::vector<float> w = {1, 2, 3, 4, 5, 6};
  std::vector<float> m = {0, 0, 0, 0, 0, 1};
  std::vector<int64_t> t = {7, 8};
  std::vector<int64_t> n = {1LL << 60, -1};
  Manifest manifest = {
      .global_step = 5, .save_id = "a", .rule = {"adam", {{"beta1", 0.9}}}, .extras = {{"input", "x"}}};
};

class CheckpointDiffTest : public ::testing::Test {
 protected:
  std::unique_ptr<CheckpointReader> Write(const std::string& directory, Content content) {
    EXPECT_TRUE(files_.CreateDirectory(directory).ok());
    Manifest& manifest = content.manifest;
    const std::string part = PartFileName(manifest.global_step, 0, 1);
    const auto count = [](const auto& values) { return static_cast<int64_t>(values.size()); };
    const std::vector<TensorView> tensors = {
        {"w", DType::kFloat32, {2, 3}, AsBytes(content.w.data(), content.w.size())},
        {"w/m", DType::kFloat32, {2, 3}, AsBytes(content.m.data(), content.m.size())},
        {"w/t", DType::kInt64, {count(content.t)}, AsBytes(content.t.data(), content.t.size())},
        {"n", DType::kInt64, {2}, AsBytes(content.n.data(), content.n.size())}};
    const auto written =
        WriteTensorFile(files_, JoinPath(directory, TemporaryName(part, manifest.save_id)), tensors).value();
    manifest.parts = {{part, written.bytes, written.crc32c}};
    const int64_t stride = content.t.size() == 2 ? 4 : 2;
    if (manifest.variables.empty())
      manifest.variables = {
          {.name = "w",
           .shape = {2, 3},
           .slices = {{0, "w", 0, {2, 3}}},
           .slots = {{.name = "m", .slices = {{0, "w/m", 0, {2, 3}}}},
                     {.name = "t", .dtype = DType::kInt64, .stride = stride, .slices = {{0, "w/t", 0, {2, 3}}}}}},
          {.name = "n", .dtype = DType::kInt64, .shape = {2}, .slices = {{0, "n", 0, {2}}}}};
    EXPECT_EQ(CommitManifest(files_, directory, manifest), absl::OkStatus());
    return CheckpointReader::Open(files_, JoinPath(directory, CheckpointName(manifest.global_step))).value();
  }
  // Returns the differences between the unchanged content and one that `change` has modified.
  std::vector<std::string> Diff(const std::function<void(Content&)>& change, const DiffOptions& options = {}) {
    const std::string suffix = std::to_string(++diffs_);
    Content changed;
    change(changed);
    const auto a = Write("a" + suffix, Content());
    const auto b = Write("b" + suffix, changed);
    return DiffCheckpoints(*a, *b, options).value();
  }

  MemoryFileSystem files_;
  int diffs_ = 0;
};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_F(CheckpointDiffTest, EqualStatesHaveNoLines) {
  EXPECT_THAT(Diff([](Content&) {}), IsEmpty());
  EXPECT_THAT(Diff([](Content& other) {
                other.manifest.save_id = "b";
                other.manifest.saved_at = 1000;
                other.manifest.job = "another";
              }),
              IsEmpty());
}

TEST_F(CheckpointDiffTest, ValuesWithTheLargestAndTheFirst) {
  EXPECT_THAT(
      Diff([](Content& other) {
        other.w[2] = 3.5;
        other.w[4] = 4;
      }),
      ElementsAre("variable 'w': 2 of 6 values differ: max abs 1, max relative 0.2, first at [0,2] (3 and 3.5)"));
  EXPECT_THAT(
      Diff([](Content& other) { other.m[5] = 1.25; }),
      ElementsAre(HasSubstr("slot 'w/m': 1 of 6 values differ: max abs 0.25, max relative 0.2, first at [1,2]")));
  EXPECT_THAT(Diff([](Content& other) { other.n[0] += 1; }), ElementsAre(HasSubstr("variable 'n': 1 of 2 values")));
}

TEST_F(CheckpointDiffTest, ToleranceIsAbsoluteAndIncluded) {
  const auto change = [](Content& other) { other.w[0] = 1.5; };
  EXPECT_THAT(Diff(change, {.tolerance = 0.5}), IsEmpty());
  EXPECT_EQ(Diff(change, {.tolerance = 0.4}).size(), 1u);
  EXPECT_EQ(Diff([](Content& other) { other.t[1] = 9; }, {.tolerance = 10}).size(), 1u) << "counters have none";
}

TEST_F(CheckpointDiffTest, NanIsLikeNanAndUnlikeAnyNumber) {
  const auto change = [](Content& other) { other.w[1] = kNan; };
  EXPECT_THAT(Diff(change, {.tolerance = 1e30}), ElementsAre(HasSubstr("1 of 6 values differ: max abs inf")));
  Content one, other;
  one.w[1] = kNan;
  other.w[1] = -kNan;
  other.m[0] = -0.0f;
  const auto a = Write("nan_a", one);
  const auto b = Write("nan_b", other);
  EXPECT_THAT(*DiffCheckpoints(*a, *b), IsEmpty());
}

TEST_F(CheckpointDiffTest, CountersByElementWhateverTheirStripes) {
  EXPECT_THAT(Diff([](Content& other) { other.t[1] = 9; }),
              ElementsAre("slot 'w/t': counters of 2 of 6 elements differ, first at [1,1] (8 and 9)"));
  EXPECT_THAT(Diff([](Content& other) { other.t = {7, 7, 8}; }), IsEmpty());
  EXPECT_THAT(Diff([](Content& other) {
                other.t = {7, 6, 8};
              }),
              ElementsAre("slot 'w/t': counters of 2 of 6 elements differ, first at [0,2] (7 and 6)"));
}

TEST_F(CheckpointDiffTest, StepRuleAndExtras) {
  EXPECT_THAT(Diff([](Content& other) {
                other.manifest.global_step = 6;
                other.manifest.rule = {"sgd", {{"learning_rate", 0.1}, {"beta1", 0.8}}};
                other.manifest.extras = {{"input", "xyz"}, {"random", ""}};
              }),
              ElementsAre("global step: 5 and 6", "rule: 'adam' and 'sgd'", "hyperparameter 'beta1': 0.9 and 0.8",
                          HasSubstr("hyperparameter 'learning_rate': only in b"),
                          "extra 'input': 1 and 3 characters that differ", HasSubstr("extra 'random': only in b")));
}

TEST_F(CheckpointDiffTest, VariablesAndSlotsOfOneOnlyAndOtherTypes) {
  const auto lines = Diff([](Content& other) {
    other.manifest.variables = {
        {.name = "w", .shape = {2, 3}, .kind = "frozen", .slices = {{0, "w", 0, {2, 3}}}},
        {.name = "v", .dtype = DType::kInt64, .shape = {2}, .slices = {{0, "n", 0, {2}}}},
    };
  });
  EXPECT_THAT(lines, ElementsAre("variable 'w': trainable and frozen", HasSubstr("slot 'w/m': only in a"),
                                 HasSubstr("slot 'w/t': only in a"), HasSubstr("variable 'n': only in a"),
                                 HasSubstr("variable 'v': only in b")));
  EXPECT_THAT(Diff([](Content& other) {
                other.manifest.variables = {
                    {.name = "w", .dtype = DType::kInt64, .shape = {2}, .slices = {{0, "n", 0, {2}}}},
                    {.name = "n", .dtype = DType::kInt64, .shape = {2}, .slices = {{0, "n", 0, {2}}}}};
              }),
              ElementsAre("variable 'w': float32[2,3] and int64[2]"));
}

TEST_F(CheckpointDiffTest, StatisticsOfVariablesSlotsAndCounters) {
  Content content;
  content.w = {3, -4, kNan, 0, 0, 0};
  const auto reader = Write("s", content);
  const auto w = StatisticsOf(*reader, "w").value();
  EXPECT_EQ(w.values, 6);
  EXPECT_EQ(w.nans, 1);
  EXPECT_EQ(w.min, -4);
  EXPECT_EQ(w.max, 3);
  EXPECT_DOUBLE_EQ(w.mean, -0.2);
  EXPECT_DOUBLE_EQ(w.norm, 5);
  EXPECT_EQ(StatisticsOf(*reader, "w", "m")->max, 1);
  const auto t = StatisticsOf(*reader, "w", "t").value();
  EXPECT_EQ(t.values, 2);
  EXPECT_EQ(t.min, 7);
  EXPECT_EQ(t.mean, 7.5);
  EXPECT_TRUE(absl::IsNotFound(StatisticsOf(*reader, "u").status()));
  EXPECT_TRUE(absl::IsNotFound(StatisticsOf(*reader, "w", "v").status()));
}

}  // namespace
}  // namespace muster::checkpoint_diff_test
