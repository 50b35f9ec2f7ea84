#include "muster/checkpoint/element_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace muster::element_values_test {
namespace {

template <typename Stored>
std::vector<double> Doubles(DType dtype, const std::vector<Stored>& stored) {
  std::vector<double> values(stored.size());
  ElementsToDoubles(dtype, AsBytes(stored.data(), stored.size()), values);
  return values;
}

TEST(ElementValuesTest, EveryTypeIsANumber) {
  EXPECT_EQ(Doubles<float>(DType::kFloat32, {0.5f, -2}), (std::vector<double>{0.5, -2}));
  EXPECT_EQ(Doubles<double>(DType::kFloat64, {1e300}), (std::vector<double>{1e300}));
  EXPECT_EQ(Doubles<int64_t>(DType::kInt64, {-7, 1LL << 50}), (std::vector<double>{-7, 1125899906842624.0}));
  EXPECT_EQ(Doubles<int32_t>(DType::kInt32, {-7}), (std::vector<double>{-7}));
  EXPECT_EQ(Doubles<uint8_t>(DType::kUInt8, {0, 255}), (std::vector<double>{0, 255}));
  EXPECT_EQ(Doubles<uint8_t>(DType::kBool, {0, 1, 2}), (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(Doubles<uint16_t>(DType::kBFloat16, {0x3f80, 0xc040}), (std::vector<double>{1, -3}));
  EXPECT_EQ(Doubles<uint16_t>(DType::kFloat16, {0x3c00, 0xc200}), (std::vector<double>{1, -3}));
}

// The examples of IEEE 754 binary16 in published tables.
TEST(ElementValuesTest, HalvesAtTheEdges) {
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0f, -24)) << "smallest subnormal";
  EXPECT_EQ(HalfToFloat(0x03ff), std::ldexp(1023.0f, -24)) << "largest subnormal";
  EXPECT_EQ(HalfToFloat(0x0400), std::ldexp(1.0f, -14)) << "smallest normal";
  EXPECT_EQ(HalfToFloat(0x7bff), 65504.0f) << "largest";
  EXPECT_EQ(HalfToFloat(0x3555), 0.333251953125f);
  EXPECT_EQ(HalfToFloat(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(HalfToFloat(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7e00)));
  EXPECT_TRUE(std::signbit(HalfToFloat(0x8000)));
}

}  // namespace
}  // namespace muster::element_values_test
