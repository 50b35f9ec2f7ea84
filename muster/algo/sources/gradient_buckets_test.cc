#include "muster/algo/sources/gradient_buckets.h"

#include <gmock/gmock.h>

namespace muster::gradient_buckets_test {
namespace {

using ::testing::ElementsAre;

const std::vector<VariableSpec> kVariables = {
    {.name = "first", .shape = {100}},
    {.name = "running_mean", .shape = {100}, .kind = VariableKind::kBuffer},
    {.name = "wide", .dtype = DType::kFloat64, .shape = {3}},
    {.name = "second", .shape = {10}},
    {.name = "large", .shape = {1000}},
    {.name = "last", .shape = {10}},
};

TEST(GradientBuckets, WhatWasAnnouncedComesFirstThenTheRestFromTheEnd) {
  EXPECT_THAT(CompleteOrder(kVariables, std::vector<uint32_t>{3, 0, 3}), ElementsAre(3, 0, 5, 4, 2));
  EXPECT_THAT(CompleteOrder(kVariables, {}), ElementsAre(5, 4, 3, 2, 0));
}

TEST(GradientBuckets, AnOrderNamesEachTrainableVariableOnce) {
  EXPECT_TRUE(IsCompleteOrder(kVariables, std::vector<uint32_t>{3, 0, 5, 4, 2}));
  EXPECT_FALSE(IsCompleteOrder(kVariables, std::vector<uint32_t>{3, 0, 5, 4})) << "one is missing";
  EXPECT_FALSE(IsCompleteOrder(kVariables, std::vector<uint32_t>{3, 0, 5, 4, 4})) << "one comes twice";
  EXPECT_FALSE(IsCompleteOrder(kVariables, std::vector<uint32_t>{3, 0, 5, 4, 2, 1})) << "a buffer";
  EXPECT_FALSE(IsCompleteOrder(kVariables, std::vector<uint32_t>{3, 0, 5, 4, 2, 6})) << "there is no variable 6";
}

TEST(GradientBuckets, AreFullOrLastAndOfOneType) {
  const std::vector<uint32_t> order = CompleteOrder(kVariables, {});
  const auto variables_of = [&](size_t bytes) {
    std::vector<std::vector<size_t>> buckets;
    for (const GradientBucket& bucket : PlanBuckets(kVariables, order, bytes)) {
      size_t sum = 0;
      for (const size_t variable : bucket.variables) {
        sum += static_cast<size_t>(kVariables[variable].bytes());
        EXPECT_EQ(kVariables[variable].dtype, bucket.dtype);
      }
      EXPECT_EQ(sum, bucket.bytes);
      buckets.push_back(bucket.variables);
    }
    return buckets;
  };
  using B = std::vector<size_t>;
  // Sizes in this order: 40 bytes, 4000, 40, 24 of another type, 400.
  EXPECT_THAT(variables_of(1), ElementsAre(B{5}, B{4}, B{3}, B{2}, B{0}));
  EXPECT_THAT(variables_of(440), ElementsAre(B{5, 4}, B{3, 0}, B{2}));
  EXPECT_THAT(variables_of(4040), ElementsAre(B{5, 4}, B{3, 0}, B{2}));
  EXPECT_THAT(variables_of(1 << 20), ElementsAre(B{5, 4, 3, 0}, B{2}));
}

}  // namespace
}  // namespace muster::gradient_buckets_test
