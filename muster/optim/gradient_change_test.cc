#include "muster/optim/gradient_change.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "muster/optim/kernels/half.h"

namespace muster::gradient_change_test {
namespace {

constexpr size_t kCount = 1100;  // more than two blocks of halves, and not a whole number of them
constexpr double kLambda = 0.7;
constexpr double kGamma = 0.02;
constexpr double kScale = 0.5;

double Value(size_t i) { return std::sin(0.37 * static_cast<double>(i)); }
double Pulled(size_t i) { return std::sin(0.36 * static_cast<double>(i)); }
double Gradient(size_t i) { return 3 * std::cos(0.11 * static_cast<double>(i)); }

using Equation = double(double value, double pulled, double gradient);
// Equation 10 of the paper.
double Compensated(double value, double pulled, double gradient) {
  const double g = kScale * gradient;
  return g + kLambda * g * g * (value - pulled);
}
// The thesis's scale, per weight.
double Smaller(double value, double pulled, double gradient) {
  return kScale * gradient / (1 / kGamma * std::pow(value - pulled, 2) + 1);
}

template <typename T>
std::vector<T> Fill(double (*of)(size_t)) {
  std::vector<T> filled(kCount);
  for (size_t i = 0; i < kCount; ++i) filled[i] = static_cast<T>(of(i));
  return filled;
}

template <typename T>
std::vector<T> Changed(const GradientChange& change, DType dtype, const std::vector<T>& value,
                       const std::vector<T>& pulled, const std::vector<T>& gradient, double scale = kScale) {
  std::vector<T> changed(value.size());
  change.Change({.dtype = dtype,
                 .value = AsBytes(value.data(), value.size()),
                 .pulled = AsBytes(pulled.data(), pulled.size()),
                 .gradient = AsBytes(gradient.data(), gradient.size()),
                 .scale = scale},
                AsMutableBytes(changed.data(), changed.size()));
  return changed;
}

template <typename T>
void ComparesWith(Equation equation, const GradientChange& change, DType dtype, double tolerance) {
  const auto value = Fill<T>(Value), pulled = Fill<T>(Pulled), gradient = Fill<T>(Gradient);
  const std::vector<T> changed = Changed(change, dtype, value, pulled, gradient);
  for (size_t i = 0; i < kCount; ++i)
    EXPECT_NEAR(changed[i], equation(value[i], pulled[i], gradient[i]), tolerance) << i;
  EXPECT_EQ(gradient, Fill<T>(Gradient)) << "inputs are only read";
}

void ComparesHalvesWith(Equation equation, const GradientChange& change) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    std::vector<uint16_t> halves[4];
    std::vector<float> exact[4];
    const auto bytes = [&](int i) { return reinterpret_cast<std::byte*>(halves[i].data()); };
    double (*const of[])(size_t) = {Value, Pulled, Gradient};
    for (int i = 0; i < 3; ++i) {
      halves[i].resize(kCount);
      HalvesFromFloats(dtype, Fill<float>(of[i]).data(), bytes(i), kCount);
    }
    halves[3] = Changed(change, dtype, halves[0], halves[1], halves[2]);
    for (int i = 0; i < 4; ++i) {
      exact[i].resize(kCount);
      FloatsFromHalves(dtype, bytes(i), exact[i].data(), kCount);
    }
    // Half a unit in the last place of 11 and of 8 bits.
    const double rounding = dtype == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
    for (size_t i = 0; i < kCount; ++i) {
      const double expected = equation(exact[0][i], exact[1][i], exact[2][i]);
      EXPECT_NEAR(exact[3][i], expected, rounding * std::abs(expected) + 1e-6) << DTypeName(dtype) << " " << i;
    }
  }
}

TEST(DelayCompensationTest, IsThePapersEquationInDoubleAndFloat) {
  ComparesWith<double>(Compensated, DelayCompensation(kLambda), DType::kFloat64, 1e-14);
  ComparesWith<float>(Compensated, DelayCompensation(kLambda), DType::kFloat32, 2e-6);
}

TEST(DelayCompensationTest, HalvesAreComputedInFloatAndRoundedOnce) {
  ComparesHalvesWith(Compensated, DelayCompensation(kLambda));
}

TEST(AdaptiveDeltaTest, IsTheThesisEquationInDoubleAndFloat) {
  ComparesWith<double>(Smaller, AdaptiveDelta(kGamma), DType::kFloat64, 1e-14);
  ComparesWith<float>(Smaller, AdaptiveDelta(kGamma), DType::kFloat32, 1e-6);
}

TEST(AdaptiveDeltaTest, HalvesAreComputedInFloatAndRoundedOnce) { ComparesHalvesWith(Smaller, AdaptiveDelta(kGamma)); }

// The smallest possible γ changes nothing where nothing has moved; elsewhere it leaves next to nothing.
TEST(AdaptiveDeltaTest, TheSmallestGammaMakesNoNaN) {
  const AdaptiveDelta smallest(std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(Changed<float>(smallest, DType::kFloat32, {1, 1}, {1, 0}, {4, 4}, /*scale=*/1), (std::vector<float>{4, 0}));
}

}  // namespace
}  // namespace muster::gradient_change_test
