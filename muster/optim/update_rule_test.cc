#include "muster/optim/update_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "muster/optim/kernel.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// The published rules, one element at a time, in double.
struct Reference {
  double p, m = 0, v = 0;

  void Apply(const RuleSpec& rule, double g, double rate, int t) {
    if (rule.kind == RuleKind::kSgd) p -= rate * g;
    if (rule.kind == RuleKind::kMomentum) {
      m = rule.momentum * m + g;
      p -= rate * (rule.nesterov ? g + rule.momentum * m : m);
    }
    if (rule.kind == RuleKind::kAdam) {
      m = rule.beta1 * m + (1 - rule.beta1) * g;
      v = rule.beta2 * v + (1 - rule.beta2) * g * g;
      const double m_hat = m / (1 - std::pow(rule.beta1, t));
      const double v_hat = v / (1 - std::pow(rule.beta2, t));
      p -= rate * m_hat / (std::sqrt(v_hat) + rule.epsilon);
    }
  }
};

double Gradient(size_t i, int t) { return std::sin(0.7 * static_cast<double>(i) + 0.37 * t) * 0.1; }

// Bytes whose elements start `shift` bytes behind an aligned address, with a guard byte at each end.
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

template <typename T>
T Get(MutableByteSpan span, size_t i) {
  T value;
  std::memcpy(&value, span.data() + i * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
void Set(MutableByteSpan span, size_t i, T value) {
  std::memcpy(span.data() + i * sizeof(T), &value, sizeof(T));
}

template <typename T>
void CompareWithReference(const RuleSpec& spec, DType dtype, size_t count, size_t shift, double tolerance) {
  auto rule = MakeUpdateRule(spec);
  ASSERT_TRUE(rule.ok()) << rule.status();
  Shifted value(count * sizeof(T), shift), gradient(count * sizeof(T), shift + 1);
  std::vector<Shifted> slots((*rule)->slots().size(), Shifted(count * sizeof(T), shift + 2));
  std::vector<MutableByteSpan> slot_spans;
  for (size_t s = 0; s < slots.size(); ++s) {
    for (size_t i = 0; i < count; ++i) Set<T>(slots[s].span(), i, static_cast<T>((*rule)->slots()[s].initial_value));
    slot_spans.push_back(slots[s].span());
  }
  std::vector<Reference> reference(count);
  for (size_t i = 0; i < count; ++i) {
    Set<T>(value.span(), i, static_cast<T>(std::cos(static_cast<double>(i)) * 0.5));
    reference[i].p = Get<T>(value.span(), i);
  }
  for (int t = 1; t <= 100; ++t) {
    const double rate = spec.learning_rate / (1 + 0.01 * t);
    for (size_t i = 0; i < count; ++i) {
      Set<T>(gradient.span(), i, static_cast<T>(Gradient(i, t)));
      reference[i].Apply(spec, Get<T>(gradient.span(), i), rate, t);
    }
    const std::vector<std::byte> before = gradient.buffer();
    (*rule)->Apply(dtype, value.span(), slot_spans, gradient.span(),
                   {.learning_rate = rate, .t = static_cast<uint64_t>(t)});
    ASSERT_EQ(before, gradient.buffer()) << "the gradient was written to";
  }
  for (size_t i = 0; i < count; ++i) {
    ASSERT_NEAR(Get<T>(value.span(), i), reference[i].p, tolerance) << "element " << i << " of " << count;
    if (!slots.empty()) {
      ASSERT_NEAR(Get<T>(slots[0].span(), i), reference[i].m, tolerance) << "element " << i;
    }
    if (slots.size() > 1) {
      ASSERT_NEAR(Get<T>(slots[1].span(), i), reference[i].v, tolerance) << "element " << i;
    }
  }
  EXPECT_TRUE(value.GuardsIntact());
  for (const Shifted& slot : slots) EXPECT_TRUE(slot.GuardsIntact());
}

std::vector<RuleSpec> Rules() {
  return {{.kind = RuleKind::kSgd, .learning_rate = 0.05},
          {.kind = RuleKind::kMomentum, .learning_rate = 0.01},
          {.kind = RuleKind::kMomentum, .learning_rate = 0.01, .momentum = 0.8, .nesterov = true},
          {.kind = RuleKind::kAdam, .learning_rate = 0.001},
          {.kind = RuleKind::kAdam, .learning_rate = 0.002, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3}};
}

class RuleTest : public ::testing::TestWithParam<RuleSpec> {};

TEST_P(RuleTest, FollowsTheReferenceFor100StepsAtEverySizeAndAlignment) {
  // Sizes around the 8 floats or 4 doubles of a vector, 1 and none; shifts that leave no element aligned.
  for (size_t count : {0, 1, 3, 4, 5, 7, 8, 9, 31, 32, 33, 100, 1003}) {
    for (size_t shift : {0, 3, 15}) {
      CompareWithReference<float>(GetParam(), DType::kFloat32, count, shift, 1e-6);
      CompareWithReference<double>(GetParam(), DType::kFloat64, count, shift, 1e-13);
    }
  }
}

TEST_P(RuleTest, ZeroGradientFromTheStartChangesNothing) {
  auto rule = MakeUpdateRule(GetParam());
  ASSERT_TRUE(rule.ok());
  std::vector<float> value(37, 1.5f), gradient(37, 0.0f);
  std::vector<std::vector<float>> slots((*rule)->slots().size(), std::vector<float>(37, 0.0f));
  std::vector<MutableByteSpan> spans;
  for (auto& slot : slots) spans.push_back(AsMutableBytes(slot.data(), slot.size()));
  (*rule)->Apply(DType::kFloat32, AsMutableBytes(value.data(), 37), spans, AsBytes(gradient.data(), 37),
                 {.learning_rate = 0.1, .t = 1});
  EXPECT_EQ(value, std::vector<float>(37, 1.5f));
}

INSTANTIATE_TEST_SUITE_P(All, RuleTest, ::testing::ValuesIn(Rules()),
                         [](const auto& info) { return RuleName(info.param.kind) + std::to_string(info.index); });

// What the loops compute, one element at a time by code that isn't vectorised: every machine must get these bits.
float PlainAdam(float p, float& m, float& v, float g, const RuleSpec& rule, double rate, int t) {
  m = static_cast<float>(rule.beta1) * m + static_cast<float>(1 - rule.beta1) * g;
  v = static_cast<float>(rule.beta2) * v + static_cast<float>(1 - rule.beta2) * (g * g);
  const float root = std::sqrt(v) * static_cast<float>(1 / std::sqrt(1 - std::pow(rule.beta2, t)));
  const float step = static_cast<float>(rate / (1 - std::pow(rule.beta1, t))) * m;
  return p - step / (root + static_cast<float>(rule.epsilon));
}

TEST(UpdateRuleTest, AdamGivesTheSameBitsAsOneElementAtATime) {
  const RuleSpec spec = {.kind = RuleKind::kAdam, .learning_rate = 0.01};
  auto rule = MakeUpdateRule(spec);
  ASSERT_TRUE(rule.ok());
  std::vector<float> p(100), m(100), v(100), g(100), p2(100), m2(100), v2(100);
  for (int i = 0; i < 100; ++i) p[i] = p2[i] = static_cast<float>(std::cos(i));
  for (int t = 1; t <= 10; ++t) {
    for (int i = 0; i < 100; ++i) {
      g[i] = static_cast<float>(Gradient(i, t));
      p2[i] = PlainAdam(p2[i], m2[i], v2[i], g[i], spec, 0.01, t);
    }
    const MutableByteSpan slots[] = {AsMutableBytes(m.data(), 100), AsMutableBytes(v.data(), 100)};
    (*rule)->Apply(DType::kFloat32, AsMutableBytes(p.data(), 100), slots, AsBytes(g.data(), 100),
                   {.learning_rate = 0.01, .t = static_cast<uint64_t>(t)});
  }
  EXPECT_EQ(p, p2);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(v, v2);
}

TEST(UpdateRuleTest, NamesRoundTrip) {
  for (RuleKind kind : {RuleKind::kSgd, RuleKind::kMomentum, RuleKind::kAdam}) {
    auto parsed = ParseRule(RuleName(kind));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, kind);
  }
  EXPECT_THAT(std::string(ParseRule("adagrad").status().message()),
              HasSubstr("unknown update rule 'adagrad'; accepted: sgd, momentum, adam"));
}

TEST(UpdateRuleTest, SlotNamesArePartOfTheCheckpointFormat) {
  const auto names = [](RuleKind kind) {
    std::vector<std::string> result;
    auto rule = MakeUpdateRule({.kind = kind});
    for (const SlotSpec& slot : (*rule)->slots()) result.push_back(slot.name);
    return result;
  };
  EXPECT_TRUE(names(RuleKind::kSgd).empty());
  EXPECT_THAT(names(RuleKind::kMomentum), ::testing::ElementsAre("momentum"));
  EXPECT_THAT(names(RuleKind::kAdam), ::testing::ElementsAre("adam_m", "adam_v"));
}

std::string Refusal(const RuleSpec& spec) {
  auto rule = MakeUpdateRule(spec);
  if (rule.ok()) return "accepted";
  EXPECT_TRUE(absl::IsInvalidArgument(rule.status()));
  return std::string(rule.status().message());
}

TEST(UpdateRuleTest, RefusalsNameTheHyperparameterItsValueAndWhatIsAccepted) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Refusal({.learning_rate = -0.5}), "rule sgd: learning_rate is -0.5; accepted: a finite number, at least 0");
  EXPECT_THAT(Refusal({.learning_rate = nan}), HasSubstr("learning_rate is nan"));
  EXPECT_THAT(Refusal({.learning_rate = std::numeric_limits<double>::infinity()}), HasSubstr("learning_rate is inf"));
  EXPECT_EQ(Refusal({.kind = RuleKind::kMomentum, .momentum = 1}),
            "rule momentum: momentum is 1; accepted: at least 0 and below 1");
  EXPECT_EQ(Refusal({.kind = RuleKind::kMomentum, .momentum = 0, .nesterov = true}),
            "rule momentum: momentum is 0; accepted: above 0 and below 1 where nesterov is on");
  EXPECT_EQ(Refusal({.kind = RuleKind::kAdam, .beta1 = -0.1}),
            "rule adam: beta1 is -0.1; accepted: at least 0 and below 1");
  EXPECT_THAT(Refusal({.kind = RuleKind::kAdam, .beta2 = nan}), HasSubstr("beta2 is nan"));
  EXPECT_EQ(Refusal({.kind = RuleKind::kAdam, .epsilon = 0}),
            "rule adam: epsilon is 0; accepted: a finite number, at least 1.2e-38");
  EXPECT_THAT(Refusal({.kind = static_cast<RuleKind>(9)}), HasSubstr("number 9; accepted: 1 (sgd)"));
  // What a rule doesn't use it doesn't judge.
  EXPECT_EQ(Refusal({.kind = RuleKind::kSgd, .momentum = 7, .beta1 = 7}), "accepted");
  EXPECT_EQ(Refusal({.learning_rate = 0}), "accepted");
}

}  // namespace
}  // namespace muster
