#include "muster/optim/kernels/add_gradient.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "muster/optim/kernels/half.h"

namespace muster::add_gradient_test {
namespace {

// Longer than a block of halves; whole numbers, so that sums are exact.
constexpr size_t kCount = kHalfBlock + 7;

template <typename T>
void ExpectSum(DType dtype, const std::vector<std::byte>& gradient) {
  // At an odd address, like a gradient off the wire.
  std::vector<std::byte> shifted(gradient.size() + 1);
  std::memcpy(shifted.data() + 1, gradient.data(), gradient.size());
  std::vector<T> sum(kCount, T{5});
  const MutableByteSpan bytes = AsMutableBytes(sum.data(), sum.size());
  AddGradient(dtype, bytes, ByteSpan(shifted).subspan(1), 3);
  AddGradient(dtype, bytes, gradient);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(sum[i], static_cast<T>(5 + 4 * (i % 100))) << DTypeName(dtype) << i;
  EXPECT_EQ(std::memcmp(shifted.data() + 1, gradient.data(), gradient.size()), 0);
}

TEST(AddGradientTest, EveryTypeAddsUpWithItsScale) {
  std::vector<float> floats(kCount);
  std::vector<double> doubles(kCount);
  for (size_t i = 0; i < kCount; ++i) doubles[i] = floats[i] = static_cast<float>(i % 100);
  std::vector<std::byte> bytes(kCount * sizeof(double));
  std::memcpy(bytes.data(), doubles.data(), bytes.size());
  ExpectSum<double>(DType::kFloat64, bytes);
  bytes.resize(kCount * sizeof(float));
  std::memcpy(bytes.data(), floats.data(), bytes.size());
  ExpectSum<float>(DType::kFloat32, bytes);
  bytes.resize(kCount * kHalfBytes);
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    HalvesFromFloats(half, floats.data(), bytes.data(), kCount);
    ExpectSum<float>(half, bytes);
  }
}

// 1 is below the last digit of a half of 4096.
TEST(AddGradientTest, HalvesAreSummedAsFloats) {
  const std::vector<float> ones(kCount, 1);
  std::vector<std::byte> halves(kCount * kHalfBytes);
  HalvesFromFloats(DType::kFloat16, ones.data(), halves.data(), kCount);
  std::vector<float> sum(kCount, 4096);
  AddGradient(DType::kFloat16, AsMutableBytes(sum.data(), sum.size()), halves);
  for (const float element : sum) EXPECT_EQ(element, 4097);
}

}  // namespace
}  // namespace muster::add_gradient_test
