// McMahan et al., KDD 2013, algorithm 1, as TensorFlow's ApplyFtrl: n' = n + g²;
// z ← z + g − (n'^q − n^q) / η · p;  p ← 0 where |z| ≤ l1, else (sign(z) l1 − z) / (n'^q / η + 2 l2);  n ← n'.
// q is −learning_rate_power. n starts at initial_accumulator. The first update forgets where p was initialised, as
// TensorFlow's does. With η = 0 (a schedule's end) nothing changes.
#include <cmath>

#include "muster/optim/element_rule.h"
#include "muster/optim/rule_descriptor.h"
#include "muster/optim/rule_options.h"

namespace muster {
namespace {

// With the usual power −½ it takes the root of the accumulator, which is vectorised; with any other power it computes
// one element at a time.
template <bool kRoot>
struct FtrlFormula {
  static constexpr size_t kSlots = 2;

  template <typename T>
  struct Numbers {
    T inverse_rate;  // 1 / η
    T power;         // applied to the accumulator: ½ for a learning_rate_power of −½
    T l1;
    T twice_l2;

    [[gnu::always_inline]] T Raised(T accumulator) const {
      if constexpr (kRoot) return std::sqrt(accumulator);
      return std::pow(accumulator, power);
    }

    [[gnu::always_inline]] void operator()(T& p, T g, T* slots) const {
      const T accumulator = slots[0] + g * g;
      const T raised = Raised(accumulator);
      const T linear = slots[1] + (g - (raised - Raised(slots[0])) * inverse_rate * p);
      slots[0] = accumulator;
      slots[1] = linear;
      const T above = std::copysign(l1, linear) - linear;
      const T moved = above / (raised * inverse_rate + twice_l2);
      p = std::abs(linear) <= l1 ? 0 : moved;  // this form keeps a NaN
    }
  };

  template <typename T>
  Numbers<T> At(const UpdateRule::Step& step) const {
    return {static_cast<T>(1 / step.learning_rate), static_cast<T>(-learning_rate_power), static_cast<T>(l1),
            static_cast<T>(2 * l2)};
  }

  double learning_rate_power;
  double l1;
  double l2;
};

// The formula divides by the rate, which a schedule may bring to 0 (and with which a warm-up starts): such a step
// changes nothing.
template <bool kRoot>
class FtrlRule final : public ElementRule<FtrlFormula<kRoot>> {
 public:
  using Base = ElementRule<FtrlFormula<kRoot>>;
  using Base::Base;

  void Apply(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots, ByteSpan gradient,
             const UpdateRule::Step& step) const override {
    if (step.learning_rate > 0) Base::Apply(dtype, value, slots, gradient, step);
  }

  void ApplyToRows(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots,
                   const UpdateRule::RowUpdates& updates, const UpdateRule::Step& step) const override {
    if (step.learning_rate > 0) Base::ApplyToRows(dtype, value, slots, updates, step);
  }
};

template <bool kRoot>
std::unique_ptr<UpdateRule> Make(const RuleSpec& spec) {
  return std::make_unique<FtrlRule<kRoot>>(
      spec.kind, FtrlFormula<kRoot>{spec.learning_rate_power, spec.l1, spec.l2},
      std::vector<SlotSpec>{{.name = "ftrl_accumulator", .initial_value = spec.initial_accumulator},
                            {.name = "ftrl_linear"}},
      spec.weight_decay);
}

std::unique_ptr<UpdateRule> Make(const RuleSpec& spec) {
  return spec.learning_rate_power == -0.5 ? Make<true>(spec) : Make<false>(spec);
}

constexpr Hyperparameter kHyperparameters[] = {hyperparameters::kInitialAccumulator,
                                               hyperparameters::kLearningRatePower, hyperparameters::kL1,
                                               hyperparameters::kL2};

}  // namespace

constinit const RuleDescriptor kFtrlRule = {
    .kind = RuleKind::kFtrl,
    .name = "ftrl",
    .standard = [] { return Ftrl(); },
    .hyperparameters = kHyperparameters,
    .works_on_rows = true,
    .make = Make,
};

}  // namespace muster
