#include "muster/launch/project/decimal_size.h"

#include <gtest/gtest.h>

namespace muster::decimal_size_test {
namespace {

TEST(DecimalSize, ChoosesTheUnitByWhatIsShown) {
  EXPECT_EQ(DecimalSize(0), "0 bytes");
  EXPECT_EQ(DecimalSize(1), "1 byte");
  EXPECT_EQ(DecimalSize(999), "999 bytes");
  EXPECT_EQ(DecimalSize(1000), "1.0 KB");
  EXPECT_EQ(DecimalSize(999'949), "999.9 KB");
  EXPECT_EQ(DecimalSize(999'950), "1.0 MB");
  EXPECT_EQ(DecimalSize(5'700'000), "5.7 MB");
  EXPECT_EQ(DecimalSize(999'999'999), "1.0 GB");
  EXPECT_EQ(DecimalSize(3'000'000'000'000), "3.0 TB");
}

}  // namespace
}  // namespace muster::decimal_size_test
