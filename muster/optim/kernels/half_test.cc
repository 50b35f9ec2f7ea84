#include "muster/optim/kernels/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "muster/base/bytes.h"

namespace muster::half_test {
namespace {

using FromHalves = void (*)(DType, const std::byte*, float*, size_t);
using ToHalves = void (*)(DType, const float*, std::byte*, size_t);

// Returns the value of a half's bits, by the formats' definitions. Not for NaN.
double Meaning(DType dtype, uint16_t half) {
  const int mantissa_bits = dtype == DType::kFloat16 ? 10 : 7, bias = dtype == DType::kFloat16 ? 15 : 127;
  const int exponent = (half & 0x7fff) >> mantissa_bits, mantissa = half & ((1 << mantissa_bits) - 1);
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  if (exponent == 2 * bias + 1) return sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

bool IsNaN(DType dtype, uint16_t half) { return (half & 0x7fff) > (dtype == DType::kFloat16 ? 0x7c00 : 0x7f80); }

std::vector<uint16_t> AllHalves() {
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  return halves;
}

// Returns every half, the midpoints between neighbours and the floats next to those, NaNs, and random bits.
std::vector<float> TellingFloats(DType dtype) {
  std::vector<float> floats;
  const uint16_t infinity = dtype == DType::kFloat16 ? 0x7c00 : 0x7f80;
  for (uint16_t half = 0; half < infinity; ++half) {
    const float exact = static_cast<float>(Meaning(dtype, half));
    const double next = half + 1 < infinity ? Meaning(dtype, half + 1) : 2 * exact - Meaning(dtype, half - 1);
    const float middle = static_cast<float>((exact + next) / 2);
    for (float value : {exact, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)}) {
      floats.push_back(value);
      floats.push_back(-value);
    }
  }
  for (uint32_t bits : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u, 0xffffffffu, 1u, 0x007fffffu})
    floats.push_back(std::bit_cast<float>(bits));
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) floats.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  return floats;
}

class HalfTest : public ::testing::TestWithParam<DType> {};

TEST_P(HalfTest, EveryHalfIsTheFloatThatItMeans) {
  const std::vector<uint16_t> halves = AllHalves();
  for (FromHalves convert : {&FloatsFromHalves, &PortableFloatsFromHalves}) {
    std::vector<float> floats(halves.size());
    convert(GetParam(), AsBytes(halves.data(), halves.size()).data(), floats.data(), halves.size());
    for (size_t i = 0; i < halves.size(); ++i) {
      if (IsNaN(GetParam(), halves[i])) {
        EXPECT_TRUE(std::isnan(floats[i])) << i;
      } else {
        ASSERT_EQ(static_cast<double>(floats[i]), Meaning(GetParam(), halves[i])) << i;
        ASSERT_EQ(std::signbit(floats[i]), i >= 0x8000) << i;
      }
    }
  }
}

TEST_P(HalfTest, FloatsGoToTheNearestHalfTiesToEven) {
  const std::vector<float> floats = TellingFloats(GetParam());
  const uint16_t infinity = GetParam() == DType::kFloat16 ? 0x7c00 : 0x7f80;
  std::vector<uint16_t> halves(floats.size());
  for (ToHalves convert : {&HalvesFromFloats, &PortableHalvesFromFloats}) {
    convert(GetParam(), floats.data(), AsMutableBytes(halves.data(), halves.size()).data(), floats.size());
    for (size_t i = 0; i < floats.size(); ++i) {
      if (std::isnan(floats[i])) {
        ASSERT_TRUE(IsNaN(GetParam(), halves[i])) << i;
        continue;
      }
      ASSERT_EQ(std::signbit(floats[i]), halves[i] >= 0x8000) << floats[i];
      const uint16_t magnitude = halves[i] & 0x7fff;
      const double exact = std::abs(static_cast<double>(floats[i]));
      // Infinity begins where the format's next number would be: half a step beyond the largest.
      const double largest = Meaning(GetParam(), infinity - 1);
      const double beyond = largest + (largest - Meaning(GetParam(), infinity - 2));
      const auto meaning = [&](uint16_t half) { return half == infinity ? beyond : Meaning(GetParam(), half); };
      ASSERT_LE(magnitude, infinity) << floats[i];
      if (exact >= beyond) {
        ASSERT_EQ(magnitude, infinity) << floats[i];
        continue;
      }
      const double error = std::abs(meaning(magnitude) - exact);
      for (int neighbour : {magnitude - 1, magnitude + 1}) {
        if (neighbour < 0 || neighbour > infinity) continue;
        const double other = std::abs(meaning(static_cast<uint16_t>(neighbour)) - exact);
        ASSERT_TRUE(error < other || (error == other && magnitude % 2 == 0)) << floats[i] << " became " << magnitude;
      }
    }
  }
}

TEST_P(HalfTest, TheProcessorsInstructionsGiveThePortableBits) {
  const std::vector<float> floats = TellingFloats(GetParam());
  std::vector<uint16_t> a(floats.size()), b(floats.size());
  HalvesFromFloats(GetParam(), floats.data(), AsMutableBytes(a.data(), a.size()).data(), floats.size());
  PortableHalvesFromFloats(GetParam(), floats.data(), AsMutableBytes(b.data(), b.size()).data(), floats.size());
  EXPECT_EQ(a, b);
  const std::vector<uint16_t> halves = AllHalves();
  std::vector<float> c(halves.size()), d(halves.size());
  FloatsFromHalves(GetParam(), AsBytes(halves.data(), halves.size()).data(), c.data(), halves.size());
  PortableFloatsFromHalves(GetParam(), AsBytes(halves.data(), halves.size()).data(), d.data(), halves.size());
  EXPECT_EQ(std::memcmp(c.data(), d.data(), c.size() * sizeof(float)), 0);
}

TEST_P(HalfTest, AnySizeAtAnyAddress) {
  for (size_t count = 0; count < 35; ++count) {
    std::vector<std::byte> halves(count * kHalfBytes + 3, std::byte{0x5a});
    std::vector<float> floats(count), back(count + 1, -7);
    for (size_t i = 0; i < count; ++i) floats[i] = static_cast<float>(i) - 5;
    HalvesFromFloats(GetParam(), floats.data(), halves.data() + 1, count);
    FloatsFromHalves(GetParam(), halves.data() + 1, back.data(), count);
    EXPECT_EQ(back[count], -7);
    back.pop_back();
    EXPECT_EQ(back, floats);
    EXPECT_EQ(halves.front(), std::byte{0x5a});
    EXPECT_EQ(halves.back(), std::byte{0x5a});
  }
}

INSTANTIATE_TEST_SUITE_P(Both, HalfTest, ::testing::Values(DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return DTypeName(info.param); });

}  // namespace
}  // namespace muster::half_test
