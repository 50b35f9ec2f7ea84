#include "muster/optim/adaptive_delta.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "muster/optim/kernels/half.h"

namespace muster::adaptive_delta_test {
namespace {

constexpr size_t kCount = 1100;  // more than two blocks of halves, and not a whole number of them
constexpr double kGamma = 0.02;
constexpr double kScale = 0.5;

double Value(size_t i) { return std::sin(0.37 * static_cast<double>(i)); }
double Pulled(size_t i) { return std::sin(0.36 * static_cast<double>(i)); }
double Delta(size_t i) { return 3 * std::cos(0.11 * static_cast<double>(i)); }
// The thesis's scale, per weight.
double Reference(double value, double pulled, double delta) {
  return kScale * delta / (1 / kGamma * std::pow(value - pulled, 2) + 1);
}

template <typename T>
std::vector<T> Fill(double (*of)(size_t)) {
  std::vector<T> filled(kCount);
  for (size_t i = 0; i < kCount; ++i) filled[i] = static_cast<T>(of(i));
  return filled;
}

template <typename T>
void ComparesWithTheReference(DType dtype, double tolerance) {
  const auto value = Fill<T>(Value), pulled = Fill<T>(Pulled), delta = Fill<T>(Delta);
  std::vector<T> changed(kCount);
  AdaptiveDelta(kGamma).Change({.dtype = dtype,
                                .value = AsBytes(value.data(), kCount),
                                .pulled = AsBytes(pulled.data(), kCount),
                                .gradient = AsBytes(delta.data(), kCount),
                                .scale = kScale},
                               AsMutableBytes(changed.data(), kCount));
  for (size_t i = 0; i < kCount; ++i) EXPECT_NEAR(changed[i], Reference(value[i], pulled[i], delta[i]), tolerance) << i;
  EXPECT_EQ(delta, Fill<T>(Delta)) << "inputs are only read";
}

TEST(AdaptiveDeltaTest, IsTheThesisEquationInDoubleAndFloat) {
  ComparesWithTheReference<double>(DType::kFloat64, 1e-14);
  ComparesWithTheReference<float>(DType::kFloat32, 1e-6);
}

TEST(AdaptiveDeltaTest, HalvesAreComputedInFloatAndRoundedOnce) {
  const auto value = Fill<float>(Value), pulled = Fill<float>(Pulled), delta = Fill<float>(Delta);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    std::vector<uint16_t> halves[4];
    for (auto& each : halves) each.resize(kCount);
    const auto bytes = [&](int i) { return reinterpret_cast<std::byte*>(halves[i].data()); };
    const std::vector<float>* floats[] = {&value, &pulled, &delta};
    std::vector<float> exact[3];
    for (int i = 0; i < 3; ++i) {
      HalvesFromFloats(dtype, floats[i]->data(), bytes(i), kCount);
      exact[i].resize(kCount);
      FloatsFromHalves(dtype, bytes(i), exact[i].data(), kCount);
    }
    AdaptiveDelta(kGamma).Change({.dtype = dtype,
                                  .value = AsBytes(halves[0].data(), kCount),
                                  .pulled = AsBytes(halves[1].data(), kCount),
                                  .gradient = AsBytes(halves[2].data(), kCount),
                                  .scale = kScale},
                                 AsMutableBytes(halves[3].data(), kCount));
    std::vector<float> changed(kCount);
    FloatsFromHalves(dtype, bytes(3), changed.data(), kCount);
    // Half a unit in the last place of 11 and of 8 bits.
    const double rounding = dtype == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
    for (size_t i = 0; i < kCount; ++i) {
      const double expected = Reference(exact[0][i], exact[1][i], exact[2][i]);
      EXPECT_NEAR(changed[i], expected, rounding * std::abs(expected) + 1e-6) << DTypeName(dtype) << " " << i;
    }
  }
}

// The smallest possible γ changes nothing where nothing has moved; elsewhere it leaves next to nothing.
TEST(AdaptiveDeltaTest, TheSmallestGammaMakesNoNaN) {
  const std::vector<float> value = {1, 1}, pulled = {1, 0}, delta = {4, 4};
  std::vector<float> changed(2);
  AdaptiveDelta(std::numeric_limits<double>::denorm_min())
      .Change({.dtype = DType::kFloat32,
               .value = AsBytes(value.data(), 2),
               .pulled = AsBytes(pulled.data(), 2),
               .gradient = AsBytes(delta.data(), 2)},
              AsMutableBytes(changed.data(), 2));
  EXPECT_EQ(changed[0], 4.0f);
  EXPECT_EQ(changed[1], 0.0f);
}

}  // namespace
}  // namespace muster::adaptive_delta_test
