#include "muster/optim/sparse_rows.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "muster/optim/kernels/half.h"
#include "muster/optim/rule_options.h"
#include "muster/optim/testing/reference_rule.h"

namespace muster::sparse_rows_test {
namespace {

using ::testing::HasSubstr;

// Elements of a floating-point type, written and read as doubles.
struct Array {
  Array(DType type, size_t count) : dtype(type), bytes(count * DTypeSize(type)) {}
  double Get(size_t i) const {
    const std::byte* at = bytes.data() + i * DTypeSize(dtype);
    if (dtype == DType::kFloat64) return *reinterpret_cast<const double*>(at);
    if (dtype == DType::kFloat32) return *reinterpret_cast<const float*>(at);
    float value;
    FloatsFromHalves(dtype, at, &value, 1);
    return value;
  }
  void Set(size_t i, double value) {
    std::byte* at = bytes.data() + i * DTypeSize(dtype);
    const float narrow = static_cast<float>(value);
    if (dtype == DType::kFloat64) {
      *reinterpret_cast<double*>(at) = value;
    } else if (dtype == DType::kFloat32) {
      *reinterpret_cast<float*>(at) = narrow;
    } else {
      HalvesFromFloats(dtype, &narrow, at, 1);
    }
  }

  DType dtype;
  std::vector<std::byte> bytes;
};

// A variable [rows, width] with its slots, initialised.
struct Matrix {
  Matrix(const UpdateRule& of, DType dtype, int64_t num_rows, int64_t row_width)
      : rule(of), width(row_width), value(dtype, num_rows * row_width) {
    for (size_t i = 0; i < value.bytes.size() / DTypeSize(dtype); ++i) value.Set(i, std::cos(static_cast<double>(i)));
    for (const SlotSpec& spec : rule.slots()) {
      slots.emplace_back(SlotDType(dtype), num_rows * row_width);
      for (int64_t i = 0; i < num_rows * row_width; ++i) slots.back().Set(i, spec.initial_value);
    }
    for (Array& slot : slots) spans.emplace_back(slot.bytes);
  }
  Matrix(const Matrix&) = delete;

  absl::Status Apply(const std::vector<int64_t>& indices, ByteSpan gradients, const UpdateRule::Step& step) {
    return ApplyRows(rule, {value.dtype, width, value.bytes, spans}, indices, gradients, step);
  }

  const UpdateRule& rule;
  const int64_t width;
  Array value;
  std::vector<Array> slots;
  std::vector<MutableByteSpan> spans;
};

struct Case {
  RuleSpec rule;
  DType dtype;
  double tolerance;
};

class SparseRowsTest : public ::testing::TestWithParam<Case> {};

// Runs 100 steps on rows drawn with repetitions, against one reference per element. The reference moves only when its
// row is drawn, by the sum of the row's gradients.
TEST_P(SparseRowsTest, FollowsTheReferenceRowByRow) {
  const Case& c = GetParam();
  const auto rule = *MakeUpdateRule(c.rule);
  for (int64_t width : {1, 3, 8, 600}) {
    constexpr int64_t kRows = 29;
    Matrix matrix(*rule, c.dtype, kRows, width);
    std::vector<ReferenceElement> reference(kRows * width);
    for (size_t i = 0; i < reference.size(); ++i) {
      reference[i].p = matrix.value.Get(i);
      for (size_t s = 0; s < matrix.slots.size(); ++s) reference[i].s[s] = matrix.slots[s].Get(i);
    }
    std::mt19937 random(1);
    for (uint64_t t = 1; t <= 100; ++t) {
      std::vector<int64_t> indices(random() % 20);
      for (int64_t& index : indices) index = static_cast<int64_t>(random() % (kRows - 1));  // never the last
      Array gradients(c.dtype, indices.size() * width);
      std::vector<double> sums(kRows * width);
      std::vector<bool> named(kRows);
      for (size_t i = 0; i < indices.size(); ++i) {
        named[indices[i]] = true;
        for (int64_t j = 0; j < width; ++j) {
          gradients.Set(i * width + j, 0.1 * std::sin(static_cast<double>(t * 7 + i * 3 + j)));
          sums[indices[i] * width + j] += gradients.Get(i * width + j);
        }
      }
      const UpdateRule::Step step = {.learning_rate = c.rule.learning_rate, .t = t, .clip_value = 0.15};
      for (size_t i = 0; i < reference.size(); ++i) {
        if (!named[i / width]) continue;
        ASSERT_TRUE(reference[i].Apply(c.rule, sums[i], step));
        if (c.dtype == DType::kFloat16 || c.dtype == DType::kBFloat16) {
          Array rounded(c.dtype, 1);
          rounded.Set(0, reference[i].p);
          reference[i].p = rounded.Get(0);
        }
      }
      const std::vector<std::byte> before = gradients.bytes;
      ASSERT_EQ(matrix.Apply(indices, gradients.bytes, step), absl::OkStatus());
      ASSERT_EQ(before, gradients.bytes) << "the gradients were written to";
    }
    for (size_t i = 0; i < reference.size(); ++i) {
      ASSERT_NEAR(matrix.value.Get(i), reference[i].p, c.tolerance) << "row " << i / width << " width " << width;
      for (size_t s = 0; s < matrix.slots.size(); ++s)
        ASSERT_NEAR(matrix.slots[s].Get(i), reference[i].s[s], c.tolerance * std::max(1.0, std::abs(reference[i].s[s])))
            << "slot " << s << " row " << i / width << " width " << width;
    }
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const RuleSpec& rule :
       {Sgd({.learning_rate = 0.05, .weight_decay = 0.01}), Momentum(), Momentum({.nesterov = true}), Adagrad(), Adam(),
        Ftrl({.learning_rate = 0.05, .l1 = 0.01}), Ftrl({.learning_rate = 0.05, .learning_rate_power = -0.4})}) {
    cases.push_back({rule, DType::kFloat32, 2e-6});
    cases.push_back({rule, DType::kFloat64, 1e-12});
    cases.push_back({rule, DType::kFloat16, 4e-3});
    cases.push_back({rule, DType::kBFloat16, 3e-2});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, SparseRowsTest, ::testing::ValuesIn(Cases()), [](const auto& info) {
  return RuleName(info.param.rule.kind) + "_" + DTypeName(info.param.dtype) + "_" + std::to_string(info.index);
});

// With SGD, a row without a gradient equals one with a gradient of zeros: the bits are those of the dense rule.
TEST(SparseRowsBitsTest, SgdIsTheDenseRuleWithZeros) {
  const auto rule = *MakeUpdateRule(Sgd());
  constexpr int64_t kRows = 500, kWidth = 13;
  Matrix sparse(*rule, DType::kFloat32, kRows, kWidth), dense(*rule, DType::kFloat32, kRows, kWidth);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < 100; ++i) indices.push_back(i * 37 % kRows);
  std::vector<float> gradients(indices.size() * kWidth), whole(kRows * kWidth);
  for (size_t i = 0; i < gradients.size(); ++i) {
    gradients[i] = std::sin(static_cast<float>(i));
    whole[indices[i / kWidth] * kWidth + i % kWidth] = gradients[i];
  }
  ASSERT_EQ(sparse.Apply(indices, AsBytes(gradients.data(), gradients.size()), {.learning_rate = 0.3}),
            absl::OkStatus());
  rule->Apply(DType::kFloat32, dense.value.bytes, {}, AsBytes(whole.data(), whole.size()), {.learning_rate = 0.3});
  EXPECT_EQ(sparse.value.bytes, dense.value.bytes);
}

TEST(SparseRowsBitsTest, RepeatedRowsAreSummedInTheirOrder) {
  const auto rule = *MakeUpdateRule(Sgd());
  const float terms[] = {1e8f, 1, -1e8f, 3};  // in floats, 1e8 + 1 is 1e8
  Matrix matrix(*rule, DType::kFloat32, 2, 1);
  matrix.value.Set(0, 0);
  ASSERT_EQ(matrix.Apply({0, 0, 0, 0}, AsBytes(terms, 4), {.learning_rate = 1}), absl::OkStatus());
  EXPECT_EQ(matrix.value.Get(0), -3);
}

TEST(SparseRowsBitsTest, ManyRowsFarApartAreAllFound) {
  const auto rule = *MakeUpdateRule(Sgd());
  constexpr int64_t kRows = 1 << 20;
  Matrix matrix(*rule, DType::kFloat32, kRows, 1);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < 4096; ++i) indices.push_back((i % 2048) * 512);  // each twice; equal in their lower bits
  for (int64_t index : indices) matrix.value.Set(index, 0);
  const std::vector<float> ones(indices.size(), 1);
  ASSERT_EQ(matrix.Apply(indices, AsBytes(ones.data(), ones.size()), {.learning_rate = 1}), absl::OkStatus());
  for (int64_t index : indices) ASSERT_EQ(matrix.value.Get(index), -2);
}

TEST(SparseRowsRefusalTest, NothingIsChanged) {
  const auto sgd = *MakeUpdateRule(Sgd());
  Matrix matrix(*sgd, DType::kFloat32, 10, 4);
  const std::vector<std::byte> before = matrix.value.bytes;
  const std::vector<float> gradients(12, 1);
  const auto refusal = [&](const std::vector<int64_t>& indices, size_t elements = 12) {
    const absl::Status status = matrix.Apply(indices, AsBytes(gradients.data(), elements), {.learning_rate = 1});
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(matrix.value.bytes, before);
    return std::string(status.message());
  };
  EXPECT_EQ(refusal({3, 1, 10}), "row 10 (index 2 of 3) is out of range: the variable has 10 rows");
  EXPECT_EQ(refusal({3, -1, 2}), "row -1 (index 1 of 3) is out of range: the variable has 10 rows");
  EXPECT_EQ(refusal({1, 2}), "gradients of 2 rows of 4 float32 are not 48 bytes long");
  EXPECT_EQ(matrix.Apply({}, {}, {.learning_rate = 1}), absl::OkStatus());
  EXPECT_EQ(matrix.value.bytes, before);

  const auto apply = [&](const RuleSpec& spec, const RowsOfVariable& variable) {
    return ApplyRows(**MakeUpdateRule(spec), variable, {}, {}, {.learning_rate = 1});
  };
  for (const RuleSpec& spec : {AdamW(), RmsProp(), Adadelta(), PlainAdd()}) {
    const absl::Status status = apply(spec, {DType::kFloat32, 4, matrix.value.bytes, {}});
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(status.message(), "rule " + RuleName(spec.kind) +
                                    " can't update single rows; accepted: sgd, momentum, adam, adagrad, ftrl");
  }
  EXPECT_THAT(std::string(apply(Sgd(), {DType::kInt64, 4, matrix.value.bytes, {}}).message()),
              HasSubstr("rows of type int64"));
  EXPECT_EQ(apply(Sgd(), {DType::kFloat32, 7, matrix.value.bytes, {}}).message(),
            "a variable of 40 elements has no rows of 7");
  EXPECT_TRUE(absl::IsInvalidArgument(apply(Sgd(), {DType::kFloat32, 0, matrix.value.bytes, {}})));
}

}  // namespace
}  // namespace muster::sparse_rows_test
