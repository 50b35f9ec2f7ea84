#include "muster/base/os/flush_denormals.h"

#include <gtest/gtest.h>

#include <thread>

namespace muster::flush_denormals_test {
namespace {

// The operands are volatile, so that the compiler can't compute the product itself.
float Product(float a, float b) {
  volatile float left = a, right = b;
  return left * right;
}

TEST(FlushDenormalsTest, HoldsForTheThreadAndThoseThatItStarts) {
  // Uses its own thread, as the setting can't be undone.
  std::thread([] {
    if (!FlushesDenormals()) {
      EXPECT_NE(Product(1e-30F, 1e-10F), 0);
    }
    FlushDenormals();
#if defined(__x86_64__) || defined(__aarch64__)
    ASSERT_TRUE(FlushesDenormals());
    EXPECT_EQ(Product(1e-30F, 1e-10F), 0) << "a result";
    EXPECT_EQ(Product(1e-40F, 1e10F), 0) << "an operand";
    EXPECT_EQ(Product(1e-20F, 1e-10F), 1e-30F) << "normal numbers stay what they are";
    std::thread([] { EXPECT_TRUE(FlushesDenormals()); }).join();
#endif
  }).join();
}

}  // namespace
}  // namespace muster::flush_denormals_test
