#include "muster/estimator/canned/feature_column.h"

#include <gtest/gtest.h>

#include "muster/train/threads/error.h"

namespace muster::feature_column_test {
namespace {

Minibatch Batch() {
  Minibatch minibatch;
  minibatch.features = {{"width", torch::tensor({1, 2}, torch::kInt32)},
                        {"area", torch::tensor({{3., 4.}, {5., 6.}}, torch::kFloat64)},
                        {"image", torch::arange(8, torch::kUInt8).view({2, 2, 2})}};
  return minibatch;
}

std::string Refusal(const std::vector<FeatureColumn>& columns) {
  try {
    InputLayer(Batch(), columns);
  } catch (const Error& error) {
    EXPECT_EQ(error.status().code(), absl::StatusCode::kInvalidArgument);
    return error.what();
  }
  return "nothing was refused";
}

TEST(FeatureColumnTest, ColumnsStandInOrderOfTheirNamesWhateverTheirTypes) {
  const torch::Tensor inputs =
      InputLayer(Batch(), {NumericColumn("width"), NumericColumn("image", 4), RealValuedColumn("area", 2)});
  EXPECT_EQ(inputs.scalar_type(), torch::kFloat32);
  EXPECT_TRUE(torch::equal(inputs, torch::tensor({{3.F, 4.F, 0.F, 1.F, 2.F, 3.F, 1.F},  //
                                                  {5.F, 6.F, 4.F, 5.F, 6.F, 7.F, 2.F}})))
      << inputs;
}

TEST(FeatureColumnTest, OneColumnAlone) {
  const Minibatch minibatch = Batch();
  const torch::Tensor before = minibatch.features.at("area").clone();
  EXPECT_TRUE(torch::equal(InputLayer(minibatch, {NumericColumn("width")}), torch::tensor({{1.F}, {2.F}})));
  const auto normalizer = [](const torch::Tensor& x) { return x - 3; };
  EXPECT_TRUE(
      torch::equal(ColumnOf(minibatch, NumericColumn("area", 2, normalizer)), torch::tensor({{0.F, 1.F}, {2.F, 3.F}})));
  EXPECT_TRUE(torch::equal(minibatch.features.at("area"), before));
}

// For uint8 pixels: the normalizer's results aren't rounded.
TEST(FeatureColumnTest, TheNormalizerComesBeforeTheType) {
  const auto normalizer = [](const torch::Tensor& x) {
    EXPECT_EQ(x.scalar_type(), torch::kUInt8);
    return x / 2.0;
  };
  const torch::Tensor numbers = ColumnOf(Batch(), NumericColumn("image", 4, normalizer));
  EXPECT_EQ(numbers[0][3].item<float>(), 1.5F);
}

TEST(FeatureColumnTest, ByName) {
  const auto columns = ColumnsByName({NumericColumn("b"), NumericColumn("a", 3), NumericColumn("B")});
  EXPECT_EQ(columns[0].name, "B");
  EXPECT_EQ(columns[1].name, "a");
  EXPECT_EQ(columns[1].dimension, 3);
  EXPECT_EQ(columns[2].name, "b");
}

TEST(FeatureColumnTest, RefusesFeaturesThatDontFit) {
  const std::string missing = Refusal({NumericColumn("height")});
  EXPECT_NE(missing.find("height"), std::string::npos) << missing;
  EXPECT_NE(missing.find("area"), std::string::npos) << missing;
  const std::string narrow = Refusal({NumericColumn("area", 3)});
  EXPECT_NE(narrow.find("'area' has 2 numbers a row (its shape is [2, 2]); its column's dimension is 3"),
            std::string::npos)
      << narrow;
  const std::string summed = Refusal({NumericColumn("area", 2, [](const torch::Tensor& x) { return x.sum(); })});
  EXPECT_NE(summed.find("normalized, is a scalar"), std::string::npos) << summed;
}

TEST(FeatureColumnTest, ChecksColumns) {
  EXPECT_EQ(CheckColumns({NumericColumn("a"), NumericColumn("b", 7)}), absl::OkStatus());
  const auto message = [](const std::vector<FeatureColumn>& columns) {
    const absl::Status status = CheckColumns(columns);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_NE(message({}).find("at least one"), std::string::npos);
  EXPECT_NE(message({NumericColumn("")}).find("no name"), std::string::npos);
  EXPECT_NE(message({NumericColumn("a"), NumericColumn("a", 2)}).find("'a' twice"), std::string::npos);
  EXPECT_NE(message({NumericColumn("a", 0)}).find("dimension is 0"), std::string::npos);
}

}  // namespace
}  // namespace muster::feature_column_test
