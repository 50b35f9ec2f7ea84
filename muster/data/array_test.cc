#include "muster/data/array.h"

#include <gmock/gmock.h>

#include <utility>

#include "muster/data/example.h"

namespace muster::array_test {
namespace {

using ::testing::ElementsAre;

TEST(Array, HoldsWhatItWasMadeOf) {
  const Array array = Array::Of<int64_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(array.dtype(), DType::kInt64);
  EXPECT_THAT(array.shape(), ElementsAre(2, 3));
  EXPECT_EQ(array.elements(), 6);
  EXPECT_EQ(array.bytes(), 48);
  EXPECT_THAT(array.As<int64_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data().data()) % 64, 0);
  const Array scalar = Array::Scalar(2.5F);
  EXPECT_TRUE(scalar.shape().empty());
  EXPECT_THAT(scalar.As<float>(), ElementsAre(2.5F));
}

TEST(Array, BeginsWithoutElements) {
  const Array array;
  EXPECT_THAT(array.shape(), ElementsAre(0));
  EXPECT_EQ(array.bytes(), 0);
  EXPECT_TRUE(array.As<float>().empty());
}

TEST(Array, CopiesAreDeep) {
  Array first = Array::Of<float>({2}, {1, 2});
  Array second = first;
  second.As<float>()[0] = 7;
  EXPECT_THAT(first.As<float>(), ElementsAre(1, 2));
  first = std::as_const(second);
  EXPECT_THAT(first.As<float>(), ElementsAre(7, 2));
  EXPECT_NE(first.data().data(), second.data().data());
}

TEST(Array, UsesItsMemoryAgain) {
  Array array = Array::Of<float>({100}, std::vector<float>(100));
  const std::byte* const memory = array.data().data();
  array.Reset(DType::kUInt8, {20, 20});
  EXPECT_EQ(array.data().data(), memory);
  EXPECT_EQ(array.bytes(), 400);
  array = Array::Of<float>({3}, {1, 2, 3});  // moved: the other's memory
  EXPECT_NE(array.data().data(), memory);
  Array small;
  small.Reset(DType::kFloat32, {50});
  const std::byte* const copied_into = small.data().data();
  small = std::as_const(array);
  EXPECT_EQ(small.data().data(), copied_into);
  EXPECT_THAT(small.As<float>(), ElementsAre(1, 2, 3));
}

TEST(Array, WhatWasMovedFromCanBeUsedAgain) {
  Array array = Array::Of<float>({2}, {1, 2});
  const Array taken = std::move(array);
  EXPECT_THAT(taken.As<float>(), ElementsAre(1, 2));
  array.Reset(DType::kFloat32, {2});  // NOLINT(bugprone-use-after-move): what is tested
  array.As<float>()[1] = 5;
  EXPECT_EQ(array.As<float>()[1], 5);
  EXPECT_THAT(taken.As<float>(), ElementsAre(1, 2));
}

TEST(Array, KeepsTheFirstRows) {
  Array array = Array::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  array.KeepRows(2);
  EXPECT_THAT(array.shape(), ElementsAre(2, 2));
  EXPECT_THAT(array.As<float>(), ElementsAre(1, 2, 3, 4));
}

TEST(ArrayDeathTest, AnotherTypeIsABug) {
  const Array array = Array::Scalar(1.0F);
  EXPECT_DEATH(array.As<int64_t>(), "check failed");
  EXPECT_DEATH(Array::Of<float>({3}, {1, 2}), "check failed");
}

TEST(Example, FindsFeaturesByName) {
  Example example;
  example.features.push_back({"a", Array::Scalar(1.0F)});
  example.features.push_back({"b", Array::Scalar(2.0F)});
  EXPECT_EQ(example.Find("b"), &example.features[1].value);
  EXPECT_EQ(std::as_const(example).Find("a"), &example.features[0].value);
  EXPECT_EQ(example.Find("c"), nullptr);
}

}  // namespace
}  // namespace muster::array_test
