#include "muster/algo/sources/gradient_sum.h"

#include <gtest/gtest.h>

#include "muster/optim/kernels/half.h"

namespace muster::gradient_sum_test {
namespace {

// A source with one variable of `dtype`, whose gradient the test sets.
class Scripted final : public GradientSource {
 public:
  Scripted(DType dtype, int64_t elements) : variables_{{.name = "w", .dtype = dtype, .shape = {elements}}} {}
  const std::vector<VariableSpec>& variables() const override { return variables_; }
  MutableByteSpan value(size_t) override { return {}; }
  absl::StatusOr<double> ComputeGradients() override { return 0; }
  ByteSpan gradient(size_t) override { return now; }

  std::vector<std::byte> now;  // empty: the minibatch doesn't use the variable

 private:
  const std::vector<VariableSpec> variables_;
};

std::vector<std::byte> Floats(std::vector<float> values) {
  const ByteSpan bytes = AsBytes(values.data(), values.size());
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> Copy(ByteSpan bytes) { return {bytes.begin(), bytes.end()}; }

TEST(GradientSumTest, AddsUpWhatComesUntilItIsCleared) {
  Scripted source(DType::kFloat32, 2);
  GradientSum sum;
  source.now = Floats({1, -2});
  sum.Add(source);
  source.now = Floats({10, 20});
  sum.Add(source);
  EXPECT_EQ(sum.minibatches(), 2);
  EXPECT_EQ(Copy(sum.sum(0)), Floats({11, 18}));
  sum.Scale(0.5);
  EXPECT_EQ(Copy(sum.sum(0)), Floats({5.5, 9}));
  sum.Clear();
  EXPECT_EQ(sum.minibatches(), 0);
  EXPECT_TRUE(sum.sum(0).empty());
  source.now = Floats({3, 4});
  sum.Add(source);
  EXPECT_EQ(Copy(sum.sum(0)), Floats({3, 4})) << "nothing is left of the sum before";
}

TEST(GradientSumTest, AVariableWithoutAPartInAnyMinibatchHasNoSum) {
  Scripted source(DType::kFloat32, 1);
  GradientSum sum;
  sum.Add(source);
  EXPECT_TRUE(sum.sum(0).empty());
  source.now = Floats({2});
  sum.Add(source);
  EXPECT_EQ(Copy(sum.sum(0)), Floats({2}));
}

// 256 + 1 isn't representable as a bfloat16, but 256 + 8 · 1 is.
TEST(GradientSumTest, HalvesAreSummedAsFloats) {
  const auto half = [](float value) {
    std::vector<std::byte> bytes(kHalfBytes);
    HalvesFromFloats(DType::kBFloat16, &value, bytes.data(), 1);
    return bytes;
  };
  Scripted source(DType::kBFloat16, 1);
  GradientSum sum;
  source.now = half(256);
  sum.Add(source);
  source.now = half(1);
  for (int i = 0; i < 8; ++i) sum.Add(source);
  EXPECT_EQ(Copy(sum.sum(0)), half(264));
}

}  // namespace
}  // namespace muster::gradient_sum_test
