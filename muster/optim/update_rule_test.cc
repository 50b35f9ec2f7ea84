#include "muster/optim/update_rule.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "muster/optim/kernels/half.h"
#include "muster/optim/rule_descriptor.h"
#include "muster/optim/rule_options.h"
#include "muster/optim/testing/reference_rule.h"

namespace muster::update_rule_test {
namespace {

double Gradient(size_t i, int t) { return std::sin(0.7 * static_cast<double>(i) + 0.37 * t) * 0.1; }

// Bytes that start `shift` bytes after an aligned address, with a guard byte at each end.
class Shifted {
 public:
  Shifted(size_t bytes, size_t shift) : buffer_(bytes + shift + 2, std::byte{0x5a}), bytes_(bytes), shift_(shift) {}
  MutableByteSpan span() { return MutableByteSpan(buffer_).subspan(shift_ + 1, bytes_); }
  bool GuardsIntact() const {
    return buffer_[shift_] == std::byte{0x5a} && buffer_[shift_ + 1 + bytes_] == std::byte{0x5a};
  }
  const std::vector<std::byte>& buffer() const { return buffer_; }

 private:
  std::vector<std::byte> buffer_;
  size_t bytes_, shift_;
};

// Returns the nearest number with `bits` bits of mantissa and exponents from `smallest` up, ties to even: the value as
// a half.
double Rounded(double value, int bits, int smallest) {
  if (value == 0) return value;
  const int exponent = std::max(std::ilogb(value), smallest) - bits;
  return std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
}
double RoundedTo(DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat16:
      return Rounded(value, 10, -14);
    case DType::kBFloat16:
      return Rounded(value, 7, -126);
    case DType::kFloat32:
      return static_cast<float>(value);
    default:
      return value;
  }
}

double Get(DType dtype, MutableByteSpan span, size_t i) {
  const std::byte* at = span.data() + i * DTypeSize(dtype);
  if (dtype == DType::kFloat64) {
    double value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  if (dtype == DType::kFloat32) {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  uint16_t half;
  std::memcpy(&half, at, sizeof(half));
  const int mantissa_bits = dtype == DType::kFloat16 ? 10 : 7, bias = dtype == DType::kFloat16 ? 15 : 127;
  const int exponent = (half & 0x7fff) >> mantissa_bits, mantissa = half & ((1 << mantissa_bits) - 1);
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                         : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

// `value` must be representable in the type.
void Set(DType dtype, MutableByteSpan span, size_t i, double value) {
  std::byte* at = span.data() + i * DTypeSize(dtype);
  if (dtype == DType::kFloat64) {
    std::memcpy(at, &value, sizeof(value));
  } else if (dtype == DType::kFloat32) {
    const float narrow = static_cast<float>(value);
    std::memcpy(at, &narrow, sizeof(narrow));
  } else {
    const float narrow = static_cast<float>(value);
    HalvesFromFloats(dtype, &narrow, at, 1);
  }
}

struct Tolerance {
  double value;  // relative, or absolute where a number is below 1
  double slots;
};

void CompareWithReference(const RuleSpec& spec, DType dtype, size_t count, size_t shift, const Tolerance& tolerance,
                          UpdateRule::Step step = {}) {
  auto rule = MakeUpdateRule(spec).value();
  const DType slot_type = SlotDType(dtype);
  Shifted value(count * DTypeSize(dtype), shift), gradient(count * DTypeSize(dtype), shift + 1);
  std::vector<Shifted> slots(rule->slots().size(), Shifted(count * DTypeSize(slot_type), shift + 2));
  std::vector<MutableByteSpan> slot_spans;
  std::vector<ReferenceElement> reference(count);
  for (size_t s = 0; s < slots.size(); ++s) {
    const double initial = RoundedTo(slot_type, rule->slots()[s].initial_value);
    for (size_t i = 0; i < count; ++i) Set(slot_type, slots[s].span(), i, reference[i].s[s] = initial);
    slot_spans.push_back(slots[s].span());
  }
  for (size_t i = 0; i < count; ++i) {
    reference[i].p = RoundedTo(dtype, std::cos(static_cast<double>(i)) * 0.5);
    Set(dtype, value.span(), i, reference[i].p);
  }
  for (int t = 1; t <= 100; ++t) {
    step.learning_rate = spec.learning_rate / (1 + 0.01 * t);
    step.t = static_cast<uint64_t>(t);
    for (size_t i = 0; i < count; ++i) {
      const double g = RoundedTo(dtype, Gradient(i, t));
      Set(dtype, gradient.span(), i, g);
      ASSERT_TRUE(reference[i].Apply(spec, g, step)) << RuleName(spec.kind) << " has no reference";
      if (slot_type != dtype) reference[i].p = RoundedTo(dtype, reference[i].p);
    }
    const std::vector<std::byte> before = gradient.buffer();
    rule->Apply(dtype, value.span(), slot_spans, gradient.span(), step);
    ASSERT_EQ(before, gradient.buffer()) << "the gradient was written to";
  }
  const auto near = [](double got, double expected, double within) {
    return std::abs(got - expected) <= within * std::max(1.0, std::abs(expected));
  };
  for (size_t i = 0; i < count; ++i) {
    ASSERT_PRED3(near, Get(dtype, value.span(), i), reference[i].p, tolerance.value)
        << DTypeName(dtype) << " element " << i << " of " << count;
    for (size_t s = 0; s < slots.size(); ++s)
      ASSERT_PRED3(near, Get(slot_type, slots[s].span(), i), reference[i].s[s], tolerance.slots)
          << DTypeName(dtype) << " slot " << rule->slots()[s].name << " element " << i;
  }
  EXPECT_TRUE(value.GuardsIntact());
  for (const Shifted& slot : slots) EXPECT_TRUE(slot.GuardsIntact());
}

std::vector<RuleSpec> Rules() {
  return {Sgd({.learning_rate = 0.05}),
          Sgd({.learning_rate = 0.05, .weight_decay = 0.1}),
          Momentum(),
          Momentum({.momentum = 0.8, .nesterov = true, .weight_decay = 0.01}),
          Adam(),
          Adam({.learning_rate = 0.002, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.02}),
          AdamW(),
          AdamW({.learning_rate = 0.01, .weight_decay = 0.5}),
          Adagrad(),
          Adagrad({.learning_rate_decay = 0.1, .weight_decay = 0.01, .initial_accumulator = 0.5, .epsilon = 1e-6}),
          RmsProp({.learning_rate = 0.001}),
          RmsProp({.learning_rate = 0.001, .rho = 0.9, .momentum = 0.7}),
          RmsProp({.learning_rate = 0.001, .epsilon = 1e-2, .weight_decay = 0.01, .centered = true}),
          RmsProp({.learning_rate = 0.001, .epsilon = 1e-2, .momentum = 0.7, .centered = true}),
          Adadelta(),
          Adadelta({.learning_rate = 0.5, .rho = 0.8, .epsilon = 1e-4, .weight_decay = 0.01}),
          Ftrl({.learning_rate = 0.05}),
          Ftrl({.learning_rate = 0.05, .l1 = 0.05, .l2 = 0.1, .weight_decay = 0.01}),
          Ftrl({.learning_rate = 0.05, .learning_rate_power = -0.3, .initial_accumulator = 0.2, .l1 = 0.01}),
          PlainAdd()};
}

class RuleTest : public ::testing::TestWithParam<RuleSpec> {};

TEST_P(RuleTest, FollowsTheReferenceFor100StepsAtEverySizeAndAlignment) {
  // Sizes around the 8 floats or 4 doubles of a vector, 1 and 0; shifts that leave no element aligned.
  for (size_t count : {0, 1, 3, 4, 5, 7, 8, 9, 31, 32, 33, 100, 1003}) {
    for (size_t shift : {0, 3, 15}) {
      CompareWithReference(GetParam(), DType::kFloat32, count, shift, {1e-6, 1e-6});
      CompareWithReference(GetParam(), DType::kFloat64, count, shift, {1e-13, 1e-13});
    }
  }
}

// A value rounded in each step may now and then fall on the other side than the reference, and continue from there:
// allow a few units in the last place of numbers up to 1 (2⁻¹¹ and 2⁻⁸). Slots are floats and follow the reference
// wherever they don't depend on the value.
TEST_P(RuleTest, HalvesFollowTheReferenceToTheirPrecision) {
  for (size_t count : {1, 7, 19}) {
    CompareWithReference(GetParam(), DType::kFloat16, count, 3, {std::ldexp(3, -11), 2e-3});
    CompareWithReference(GetParam(), DType::kBFloat16, count, 3, {std::ldexp(3, -8), 2e-2});
  }
}

TEST_P(RuleTest, SeesTheGradientScaledAndThenClipped) {
  const UpdateRule::Step step = {.gradient_scale = 0.7, .clip_value = 0.05};
  CompareWithReference(GetParam(), DType::kFloat32, 21, 3, {1e-6, 1e-6}, step);
  CompareWithReference(GetParam(), DType::kFloat64, 21, 3, {1e-13, 1e-13}, step);
  CompareWithReference(GetParam(), DType::kFloat16, 9, 3, {std::ldexp(3, -11), 2e-3}, step);
}

// A broken gradient must be seen, whatever clips it.
TEST_P(RuleTest, NaNIsNotHidden) {
  auto rule = MakeUpdateRule(GetParam()).value();
  std::vector<float> value(37, 1.5f), gradient(37, 0.0f);
  gradient[5] = gradient[36] = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::vector<float>> slots(rule->slots().size(), std::vector<float>(37, 0.0f));
  std::vector<MutableByteSpan> spans;
  for (auto& slot : slots) spans.push_back(AsMutableBytes(slot.data(), slot.size()));
  rule->Apply(DType::kFloat32, AsMutableBytes(value.data(), 37), spans, AsBytes(gradient.data(), 37),
              {.learning_rate = 0.1, .t = 1, .clip_value = 0.5});
  for (size_t i = 0; i < value.size(); ++i) EXPECT_EQ(std::isnan(value[i]), i == 5 || i == 36) << i;
}

INSTANTIATE_TEST_SUITE_P(All, RuleTest, ::testing::ValuesIn(Rules()),
                         [](const auto& info) { return RuleName(info.param.kind) + std::to_string(info.index); });

TEST(UpdateRuleTest, EveryRuleOfTheTableIsAmongThoseComparedWithTheReference) {
  for (const RuleDescriptor* rule : AllRules()) {
    const std::vector<RuleSpec> rules = Rules();
    EXPECT_TRUE(std::any_of(rules.begin(), rules.end(), [&](const RuleSpec& spec) { return spec.kind == rule->kind; }))
        << rule->name;
  }
}

TEST(UpdateRuleTest, ZeroGradientFromTheStartChangesNothing) {
  for (const RuleSpec& spec : Rules()) {
    if (spec.weight_decay != 0 || spec.kind == RuleKind::kFtrl) continue;  // these move even without a gradient
    auto rule = MakeUpdateRule(spec).value();
    std::vector<float> value(37, 1.5f), gradient(37, 0.0f);
    std::vector<std::vector<float>> slots(rule->slots().size(), std::vector<float>(37, 0.0f));
    std::vector<MutableByteSpan> spans;
    for (auto& slot : slots) spans.push_back(AsMutableBytes(slot.data(), slot.size()));
    rule->Apply(DType::kFloat32, AsMutableBytes(value.data(), 37), spans, AsBytes(gradient.data(), 37),
                {.learning_rate = 0.1, .t = 1});
    EXPECT_EQ(value, std::vector<float>(37, 1.5f)) << RuleName(spec.kind);
  }
}

// Computes what the loops do, one element at a time, in code that isn't vectorised: every machine must get these bits.
float PlainAdam(float p, float& m, float& v, float g, const RuleSpec& rule, double rate, int t) {
  m = static_cast<float>(rule.beta1) * m + static_cast<float>(1 - rule.beta1) * g;
  v = static_cast<float>(rule.beta2) * v + static_cast<float>(1 - rule.beta2) * (g * g);
  const float root = std::sqrt(v) * static_cast<float>(1 / std::sqrt(1 - std::pow(rule.beta2, t)));
  const float step = static_cast<float>(rate / (1 - std::pow(rule.beta1, t))) * m;
  return p - step / (root + static_cast<float>(rule.epsilon));
}

TEST(UpdateRuleTest, AdamGivesTheSameBitsAsOneElementAtATime) {
  const RuleSpec spec = {.kind = RuleKind::kAdam, .learning_rate = 0.01};
  auto rule = MakeUpdateRule(spec).value();
  std::vector<float> p(100), m(100), v(100), g(100), p2(100), m2(100), v2(100);
  for (int i = 0; i < 100; ++i) p[i] = p2[i] = static_cast<float>(std::cos(i));
  for (int t = 1; t <= 10; ++t) {
    for (int i = 0; i < 100; ++i) {
      g[i] = static_cast<float>(Gradient(i, t));
      p2[i] = PlainAdam(p2[i], m2[i], v2[i], g[i], spec, 0.01, t);
    }
    const MutableByteSpan slots[] = {AsMutableBytes(m.data(), 100), AsMutableBytes(v.data(), 100)};
    rule->Apply(DType::kFloat32, AsMutableBytes(p.data(), 100), slots, AsBytes(g.data(), 100),
                {.learning_rate = 0.01, .t = static_cast<uint64_t>(t)});
  }
  EXPECT_EQ(p, p2);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(v, v2);
}

// A gradient whose square is 0 as a float16 still moves the variable, because the moments are floats.
TEST(UpdateRuleTest, SlotsOfHalvesAreFloats) {
  EXPECT_EQ(SlotDType(DType::kFloat16), DType::kFloat32);
  EXPECT_EQ(SlotDType(DType::kBFloat16), DType::kFloat32);
  EXPECT_EQ(SlotDType(DType::kFloat32), DType::kFloat32);
  EXPECT_EQ(SlotDType(DType::kFloat64), DType::kFloat64);
  auto rule = MakeUpdateRule(Adam({.learning_rate = 0.25})).value();
  uint16_t value = 0x3c00, gradient = 0x0200;  // 1 and 2⁻¹⁵
  float m = 0, v = 0;
  const MutableByteSpan slots[] = {AsMutableBytes(&m, 1), AsMutableBytes(&v, 1)};
  rule->Apply(DType::kFloat16, AsMutableBytes(&value, 1), slots, AsBytes(&gradient, 1), {.learning_rate = 0.25});
  EXPECT_EQ(value, 0x3a00) << "0.75";
  EXPECT_GT(v, 0);
}

template <typename T>
std::vector<T> Sum(DType dtype, std::vector<T> value, const std::vector<T>& delta) {
  auto rule = MakeUpdateRule(PlainAdd());
  const std::vector<T> before = delta;
  (*rule)->Apply(dtype, AsMutableBytes(value.data(), value.size()), {}, AsBytes(delta.data(), delta.size()),
                 {.learning_rate = 0.5, .gradient_scale = 0.5, .clip_value = 1});
  EXPECT_EQ(before, delta);
  return value;
}

TEST(UpdateRuleTest, WholeNumbersAreAddedAndWrapAround) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> value(41, kMax), delta(41, 2), expected(41, kMin + 1);
  value[7] = -5, delta[7] = kMin, expected[7] = kMax - 4;
  value[40] = 1, delta[40] = -3, expected[40] = -2;
  EXPECT_EQ(Sum(DType::kInt64, value, delta), expected);
  EXPECT_EQ(Sum<uint8_t>(DType::kUInt8, std::vector<uint8_t>(99, 250), std::vector<uint8_t>(99, 13)),
            std::vector<uint8_t>(99, 7));
}

TEST(UpdateRuleTest, FtrlStandsStillAtARateOfZero) {
  auto rule = MakeUpdateRule(Ftrl());
  float value = 2, accumulator = 0.1f, linear = 0.3f;
  const float gradient = 1;
  const MutableByteSpan slots[] = {AsMutableBytes(&accumulator, 1), AsMutableBytes(&linear, 1)};
  (*rule)->Apply(DType::kFloat32, AsMutableBytes(&value, 1), slots, AsBytes(&gradient, 1), {.learning_rate = 0});
  EXPECT_EQ(value, 2);
  EXPECT_EQ(accumulator, 0.1f);
  EXPECT_EQ(linear, 0.3f);
}

// The variance of a constant gradient is only rounding; a negative one would have no root.
TEST(UpdateRuleTest, CenteredRmsPropSurvivesAConstantGradient) {
  const RuleSpec spec = RmsProp({.learning_rate = 1e-6, .rho = 0.5, .centered = true});
  auto rule = MakeUpdateRule(spec);
  std::vector<float> value(64, 1), square(64, 0), mean(64, 0), gradient(64);
  for (int i = 0; i < 64; ++i) gradient[i] = 0.1f + 0.013f * static_cast<float>(i);
  const MutableByteSpan slots[] = {AsMutableBytes(square.data(), 64), AsMutableBytes(mean.data(), 64)};
  for (uint64_t t = 1; t <= 200; ++t)
    (*rule)->Apply(DType::kFloat32, AsMutableBytes(value.data(), 64), slots, AsBytes(gradient.data(), 64),
                   {.learning_rate = 1e-6, .t = t});
  for (float v : value) EXPECT_TRUE(std::isfinite(v));
}

TEST(UpdateRuleTest, SlotNamesArePartOfTheCheckpointFormat) {
  const auto names = [](const RuleSpec& spec) {
    std::vector<std::string> result;
    auto rule = MakeUpdateRule(spec);
    EXPECT_EQ((*rule)->kind(), spec.kind);
    for (const SlotSpec& slot : (*rule)->slots()) result.push_back(slot.name);
    return result;
  };
  using ::testing::ElementsAre;
  EXPECT_TRUE(names(Sgd()).empty());
  EXPECT_THAT(names(Momentum()), ElementsAre("momentum"));
  EXPECT_THAT(names(Adam()), ElementsAre("adam_m", "adam_v"));
  EXPECT_THAT(names(AdamW()), ElementsAre("adam_m", "adam_v"));
  EXPECT_THAT(names(Adagrad()), ElementsAre("adagrad_sum"));
  EXPECT_THAT(names(RmsProp()), ElementsAre("rmsprop_square"));
  EXPECT_THAT(names(RmsProp({.momentum = 0.5})), ElementsAre("rmsprop_square", "rmsprop_momentum"));
  EXPECT_THAT(names(RmsProp({.centered = true})), ElementsAre("rmsprop_square", "rmsprop_mean"));
  EXPECT_THAT(names(RmsProp({.momentum = 0.5, .centered = true})),
              ElementsAre("rmsprop_square", "rmsprop_mean", "rmsprop_momentum"));
  EXPECT_THAT(names(Adadelta()), ElementsAre("adadelta_square", "adadelta_delta"));
  EXPECT_THAT(names(Ftrl()), ElementsAre("ftrl_accumulator", "ftrl_linear"));
  EXPECT_TRUE(names(PlainAdd()).empty());
}

}  // namespace
}  // namespace muster::update_rule_test
