#include "muster/launch/engines/kubernetes/yaml/quantity.h"

#include <gtest/gtest.h>

namespace muster::quantity_test {
namespace {

TEST(QuantityTest, ProcessorsAreWholeOnesOrThousandths) {
  EXPECT_EQ(CpuQuantity(2), "2");
  EXPECT_EQ(CpuQuantity(2.5), "2500m");
  EXPECT_EQ(CpuQuantity(0.5), "500m");
  EXPECT_EQ(CpuQuantity(0.3), "300m");
  EXPECT_EQ(CpuQuantity(0.0015), "2m");
  EXPECT_EQ(CpuQuantity(0.0001), "1m") << "no pod is to have none";
}

TEST(QuantityTest, MemoryHasTheLargestUnitThatLosesNothing) {
  EXPECT_EQ(MemoryQuantity(int64_t{4} << 30), "4Gi");
  EXPECT_EQ(MemoryQuantity(int64_t{1536} << 20), "1536Mi");
  EXPECT_EQ(MemoryQuantity(1000), "1000");
}

}  // namespace
}  // namespace muster::quantity_test
