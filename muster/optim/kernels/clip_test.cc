#include "muster/optim/kernels/clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "muster/optim/kernels/half.h"

namespace muster::clip_test {
namespace {

TEST(ClipTest, SumOfSquaresIsThatOfDoublesAtEverySizeAndAlignment) {
  for (size_t count : {0, 1, 2, 15, 16, 17, 31, 32, 33, 511, 512, 513, 1000, 4099}) {
    std::vector<float> floats(count);
    std::vector<double> doubles(count);
    double plain = 0;
    for (size_t i = 0; i < count; ++i) {
      doubles[i] = floats[i] = static_cast<float>(std::sin(0.1 * static_cast<double>(i)) * 3);
      plain += doubles[i] * doubles[i];
    }
    std::vector<std::byte> shifted(count * sizeof(float) + 3);
    if (count > 0) std::memcpy(shifted.data() + 3, floats.data(), count * sizeof(float));
    EXPECT_NEAR(SumOfSquares(DType::kFloat64, AsBytes(doubles.data(), count)), plain, 1e-13 * plain);
    const double of_floats = SumOfSquares(DType::kFloat32, AsBytes(floats.data(), count));
    EXPECT_NEAR(of_floats, plain, 1e-13 * plain);
    EXPECT_EQ(SumOfSquares(DType::kFloat32, ByteSpan(shifted).subspan(3)), of_floats);
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
      std::vector<std::byte> halves(count * kHalfBytes);
      HalvesFromFloats(dtype, floats.data(), halves.data(), count);
      EXPECT_NEAR(SumOfSquares(dtype, halves), plain, 0.01 * plain);
    }
  }
}

// clip.h promises the same order everywhere, so the bits must match: 16 lanes, then their sum.
TEST(ClipTest, SumOfSquaresAddsUpInAFixedOrder) {
  std::vector<double> elements(1003);
  double lanes[16] = {}, total = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = std::exp(std::sin(static_cast<double>(i)) * 20);
    lanes[i % 16] += elements[i] * elements[i];
  }
  for (double lane : lanes) total += lane;
  EXPECT_EQ(SumOfSquares(DType::kFloat64, AsBytes(elements.data(), elements.size())), total);
}

TEST(ClipTest, SquaresBeyondTheFloatsAreStillCounted) {
  const std::vector<float> large(2, 1e30f), small(2, 1e-30f);
  EXPECT_NEAR(SumOfSquares(DType::kFloat32, AsBytes(large.data(), 2)) / 2e60, 1, 1e-6);
  EXPECT_NEAR(SumOfSquares(DType::kFloat32, AsBytes(small.data(), 2)) / 2e-60, 1, 1e-6);
}

TEST(ClipTest, ScaleAndValue) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const ClipKind kind : {ClipKind::kNorm, ClipKind::kGlobalNorm}) {
    EXPECT_EQ(ClipScale({kind, 2}, 100), 0.2);
    EXPECT_EQ(ClipScale({kind, 2}, 4), 1) << "at the limit";
    EXPECT_EQ(ClipScale({kind, 2}, 0), 1);
    EXPECT_TRUE(std::isnan(ClipScale({kind, 2}, infinity)));
    EXPECT_TRUE(std::isnan(ClipScale({kind, 2}, std::nan(""))));
    EXPECT_EQ(ClipValue({kind, 2}), infinity);
  }
  EXPECT_EQ(ClipScale({ClipKind::kNone, 2}, 100), 1);
  EXPECT_EQ(ClipScale({ClipKind::kValue, 2}, infinity), 1);
  EXPECT_EQ(ClipValue({ClipKind::kValue, 2}), 2);
  EXPECT_EQ(ClipValue({}), infinity);
}

TEST(ClipTest, RefusalsNameTheKindTheLimitAndWhatIsAccepted) {
  EXPECT_EQ(CheckClip({}), absl::OkStatus());
  EXPECT_EQ(CheckClip({ClipKind::kGlobalNorm, 0.1}), absl::OkStatus());
  EXPECT_EQ(CheckClip({ClipKind::kGlobalNorm, -1}).message(),
            "clipping by global_norm: limit is -1; accepted: a finite number above 0");
  EXPECT_TRUE(absl::IsInvalidArgument(CheckClip({ClipKind::kValue, std::nan("")})));
  EXPECT_EQ(CheckClip({static_cast<ClipKind>(9), 1}).message(),
            "unknown clipping number 9; accepted: 0 (none), 1 (value), 2 (norm), 3 (global_norm)");
}

}  // namespace
}  // namespace muster::clip_test
