#include "muster/optim/delay_compensation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "muster/optim/kernels/half.h"

namespace muster::delay_compensation_test {
namespace {

constexpr size_t kCount = 1100;  // more than two blocks of halves, and not a whole number of them
constexpr double kLambda = 0.7;
constexpr double kScale = 0.5;

double Value(size_t i) { return std::sin(0.37 * static_cast<double>(i)); }
double Pulled(size_t i) { return std::sin(0.36 * static_cast<double>(i)); }
double Gradient(size_t i) { return 3 * std::cos(0.11 * static_cast<double>(i)); }
// Equation 10 of the paper.
double Reference(double value, double pulled, double gradient) {
  const double g = kScale * gradient;
  return g + kLambda * g * g * (value - pulled);
}

template <typename T>
std::vector<T> Fill(double (*of)(size_t)) {
  std::vector<T> filled(kCount);
  for (size_t i = 0; i < kCount; ++i) filled[i] = static_cast<T>(of(i));
  return filled;
}

template <typename T>
void ComparesWithTheReference(DType dtype, double tolerance) {
  const auto value = Fill<T>(Value), pulled = Fill<T>(Pulled), gradient = Fill<T>(Gradient);
  std::vector<T> changed(kCount);
  DelayCompensation(kLambda).Change({.dtype = dtype,
                                     .value = AsBytes(value.data(), kCount),
                                     .pulled = AsBytes(pulled.data(), kCount),
                                     .gradient = AsBytes(gradient.data(), kCount),
                                     .scale = kScale},
                                    AsMutableBytes(changed.data(), kCount));
  for (size_t i = 0; i < kCount; ++i)
    EXPECT_NEAR(changed[i], Reference(value[i], pulled[i], gradient[i]), tolerance) << i;
  EXPECT_EQ(gradient, Fill<T>(Gradient)) << "inputs are only read";
}

TEST(DelayCompensationTest, IsThePapersEquationInDoubleAndFloat) {
  ComparesWithTheReference<double>(DType::kFloat64, 1e-14);
  ComparesWithTheReference<float>(DType::kFloat32, 2e-6);
}

TEST(DelayCompensationTest, HalvesAreComputedInFloatAndRoundedOnce) {
  const auto value = Fill<float>(Value), pulled = Fill<float>(Pulled), gradient = Fill<float>(Gradient);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    std::vector<uint16_t> halves[4];
    for (auto& each : halves) each.resize(kCount);
    const auto bytes = [&](int i) { return reinterpret_cast<std::byte*>(halves[i].data()); };
    const std::vector<float>* floats[] = {&value, &pulled, &gradient};
    for (int i = 0; i < 3; ++i) HalvesFromFloats(dtype, floats[i]->data(), bytes(i), kCount);
    const auto span = [&](int i) { return ByteSpan(bytes(i), kCount * kHalfBytes); };
    DelayCompensation(kLambda).Change(
        {.dtype = dtype, .value = span(0), .pulled = span(1), .gradient = span(2), .scale = kScale},
        {bytes(3), kCount * kHalfBytes});
    std::vector<float> back[4];
    for (int i = 0; i < 4; ++i) {
      back[i].resize(kCount);
      FloatsFromHalves(dtype, bytes(i), back[i].data(), kCount);
    }
    for (size_t i = 0; i < kCount; ++i) {
      const double expected = Reference(back[0][i], back[1][i], back[2][i]);
      EXPECT_NEAR(back[3][i], expected, std::abs(expected) * (dtype == DType::kFloat16 ? 1e-3 : 8e-3) + 1e-6) << i;
    }
  }
}

}  // namespace
}  // namespace muster::delay_compensation_test
