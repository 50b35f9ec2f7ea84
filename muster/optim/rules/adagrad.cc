// Duchi, Hazan and Singer, JMLR 12 (2011), as torch::optim::Adagrad: s ← s + g²;
// p ← p − η / (1 + (t − 1) d) · g / (√s + ε), d being learning_rate_decay. s starts at initial_accumulator.
#include <cmath>

#include "muster/optim/element_rule.h"
#include "muster/optim/rule_descriptor.h"
#include "muster/optim/rule_options.h"

namespace muster {
namespace {

struct AdagradFormula {
  static constexpr size_t kSlots = 1;

  template <typename T>
  struct Numbers {
    T rate;  // η / (1 + (t − 1) d)
    T epsilon;

    [[gnu::always_inline]] void operator()(T& p, T g, T* slots) const {
      const T sum = slots[0] + g * g;
      slots[0] = sum;
      p = p - rate * g / (std::sqrt(sum) + epsilon);
    }
  };

  template <typename T>
  Numbers<T> At(const UpdateRule::Step& step) const {
    const double slower = 1 + static_cast<double>(step.t - 1) * learning_rate_decay;
    return {static_cast<T>(step.learning_rate / slower), static_cast<T>(epsilon)};
  }

  double learning_rate_decay;
  double epsilon;
};

std::unique_ptr<UpdateRule> Make(const RuleSpec& spec) {
  return std::make_unique<ElementRule<AdagradFormula>>(
      spec.kind, AdagradFormula{spec.learning_rate_decay, spec.epsilon},
      std::vector<SlotSpec>{{.name = "adagrad_sum", .initial_value = spec.initial_accumulator}}, spec.weight_decay);
}

constexpr Hyperparameter kHyperparameters[] = {hyperparameters::kEpsilon, hyperparameters::kInitialAccumulator,
                                               hyperparameters::kLearningRateDecay};

}  // namespace

constinit const RuleDescriptor kAdagradRule = {
    .kind = RuleKind::kAdagrad,
    .name = "adagrad",
    .standard = [] { return Adagrad(); },
    .hyperparameters = kHyperparameters,
    .works_on_rows = true,
    .make = Make,
};

}  // namespace muster
