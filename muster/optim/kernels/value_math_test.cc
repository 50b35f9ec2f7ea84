#include "muster/optim/kernels/value_math.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "muster/optim/kernels/half.h"

namespace muster::value_math_test {
namespace {

// More than a block of halves, and no multiple of a vector.
constexpr size_t kCount = 2 * kHalfBlock + 7;

class ValueMathTest : public ::testing::TestWithParam<DType> {
 protected:
  // Numbers that every type represents exactly.
  static double At(size_t i) { return static_cast<double>(i % 32) - 8; }

  static std::vector<std::byte> Make(double factor) {
    std::vector<float> floats(kCount);
    for (size_t i = 0; i < kCount; ++i) floats[i] = static_cast<float>(factor * At(i));
    std::vector<std::byte> bytes(kCount * DTypeSize(GetParam()));
    if (GetParam() == DType::kFloat32) std::memcpy(bytes.data(), floats.data(), bytes.size());
    if (GetParam() == DType::kFloat64)
      for (size_t i = 0; i < kCount; ++i) {
        const double wide = floats[i];
        std::memcpy(bytes.data() + i * sizeof wide, &wide, sizeof wide);
      }
    if (DTypeSize(GetParam()) == kHalfBytes) HalvesFromFloats(GetParam(), floats.data(), bytes.data(), kCount);
    return bytes;
  }
  const std::vector<std::byte> ones_ = Make(1), twos_ = Make(2);
};

TEST_P(ValueMathTest, SetsAScaledDifference) {
  std::vector<std::byte> into = Make(3);
  SetDifference(GetParam(), into, twos_, ones_, -0.5);
  EXPECT_EQ(into, Make(-0.5));
}

TEST_P(ValueMathTest, AddsAScaledSpan) {
  std::vector<std::byte> into = Make(1);
  AddScaled(GetParam(), into, twos_, 0.25);
  EXPECT_EQ(into, Make(1.5));
}

TEST_P(ValueMathTest, SetsAll) {
  std::vector<std::byte> into = Make(2), zeros = Make(0);
  SetAll(GetParam(), into, 0.5);
  EXPECT_NE(into, zeros);
  AddScaled(GetParam(), zeros, into, 2);
  SetAll(GetParam(), into, 1);
  EXPECT_EQ(into, zeros);
}

TEST_P(ValueMathTest, Scales) {
  std::vector<std::byte> into = Make(2);
  ScaleBy(GetParam(), into, 0.75);
  EXPECT_EQ(into, Make(1.5));
}

INSTANTIATE_TEST_SUITE_P(Types, ValueMathTest,
                         ::testing::Values(DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16),
                         [](const auto& dtype) { return DTypeName(dtype.param); });

}  // namespace
}  // namespace muster::value_math_test
