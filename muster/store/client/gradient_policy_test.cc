#include "muster/store/client/gradient_policy.h"

#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

namespace muster::gradient_policy_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

// Variables with the gradients (3, 4), 12 and none; whole numbers and a buffer, which have none that count.
class GradientPolicyTest : public ::testing::Test {
 protected:
  GradientPolicyTest() {
    binding_.variables = {{.name = "w", .shape = {2}},
                          {.name = "b", .dtype = DType::kFloat64, .shape = {1}},
                          {.name = "unused", .shape = {2}},
                          {.name = "count", .dtype = DType::kInt64, .shape = {1}},
                          {.name = "mean", .shape = {1}, .kind = VariableKind::kBuffer}};
  }
  std::vector<double> Squares() {
    passes_ = 0;
    WireStaging wire(wire_);
    wire.Bind(binding_.variables);
    const auto gradient = [this](size_t i) {
      ++passes_;
      if (i == 0) return AsBytes(w_.data(), w_.size());
      return i == 1 ? AsBytes(b_.data(), b_.size()) : ByteSpan();
    };
    std::vector<double> squares;
    FindSquares(binding_, gradient, &wire, squares);
    return squares;
  }
  absl::StatusOr<bool> Drops() { return DropsNonFinite(binding_, Squares(), "worker:1", 7); }
  std::vector<double> Scales() { return ScalesOf(Squares()); }
  std::vector<double> ScalesOf(const std::vector<double>& squares) {
    std::vector<double> scales;
    FindClipScales(binding_, squares, scales);
    return scales;
  }

  ModelBinding binding_;
  WireOptions wire_;
  std::vector<float> w_ = {3, 4};
  std::vector<double> b_ = {12};
  int passes_ = 0;
};

TEST_F(GradientPolicyTest, AGradientOfAnotherShapeOrTypeIsNamed) {
  const auto w = [this](size_t i) { return i == 0 ? AsBytes(w_.data(), w_.size()) : ByteSpan(); };
  EXPECT_EQ(CheckGradients(binding_, w), absl::OkStatus());
  w_.push_back(5);
  const absl::Status refused = CheckGradients(binding_, w);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              ::testing::HasSubstr("the gradient of variable 'w' has 12 bytes, but float32 [2] has 8"));
}

TEST_F(GradientPolicyTest, NobodyLooksWhereNobodyAsks) {
  EXPECT_THAT(Squares(), IsEmpty());
  EXPECT_EQ(passes_, 0);
  EXPECT_THAT(Scales(), IsEmpty());
  w_[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(*Drops(), false);
}

TEST_F(GradientPolicyTest, OnePassGivesFinitenessAndScales) {
  binding_.optimizer.non_finite = NonFinite::kDrop;
  EXPECT_THAT(Scales(), IsEmpty());
  binding_.optimizer.rule.clip = {ClipKind::kNorm, 1};
  const std::vector<double> squares = Squares();
  EXPECT_THAT(squares, ElementsAre(25, 144, 0, 0, 0));
  EXPECT_EQ(passes_, 3);
  EXPECT_EQ(*DropsNonFinite(binding_, squares, "worker:1", 7), false);
  EXPECT_THAT(ScalesOf(squares), ElementsAre(1.0 / 5, 1.0 / 12, 1, 1, 1));
  binding_.optimizer.rule.clip = {ClipKind::kGlobalNorm, 1};
  EXPECT_THAT(Scales(), ElementsAre(1.0 / 13, 1.0 / 13, 1.0 / 13, 1.0 / 13, 1.0 / 13));
}

TEST_F(GradientPolicyTest, WhatIsNotFiniteIsDroppedOrNamed) {
  b_[0] = std::numeric_limits<double>::infinity();
  binding_.optimizer.non_finite = NonFinite::kDrop;
  EXPECT_EQ(*Drops(), true);
  binding_.optimizer.non_finite = NonFinite::kStop;
  const absl::Status stop = Drops().status();
  EXPECT_TRUE(absl::IsInvalidArgument(stop));
  EXPECT_THAT(std::string(stop.message()),
              ::testing::HasSubstr("variable 'b' of worker:1 after global step 7 has NaN"));
}

}  // namespace
}  // namespace muster::gradient_policy_test
