#include "muster/launch/backends/local/kernel_file.h"

#include <gtest/gtest.h>

namespace muster::kernel_file_test {
namespace {

TEST(ReadKernelFileTest, WhatCanBeReadIsWholeAndNoErrorThrows) {
  EXPECT_EQ(ReadKernelFile("/proc/self/comm")->back(), '\n');
  EXPECT_GT(ReadKernelFile("/proc/self/maps")->size(), 4096) << "more than a piece";
  EXPECT_EQ(ReadKernelFile("/proc/self/mem"), "") << "there is nothing at its beginning: reading fails";
  EXPECT_EQ(ReadKernelFile("/proc/no such file"), std::nullopt);
}

}  // namespace
}  // namespace muster::kernel_file_test
