// Kingma and Ba, arXiv 1412.6980, algorithm 1, as torch::optim::Adam computes it: m ← β₁ m + (1 − β₁) g;
// v ← β₂ v + (1 − β₂) g²;  p ← p − η / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε).
// AdamW (Loshchilov and Hutter, arXiv 1711.05101, torch::optim::AdamW): p ← (1 − η λ) p first, and λ p isn't in g.
#include <cmath>

#include "muster/optim/element_rule.h"
#include "muster/optim/rule_descriptor.h"
#include "muster/optim/rule_options.h"

namespace muster {
namespace {

struct AdamFormula {
  static constexpr size_t kSlots = 2;

  // Computed in double and rounded to the element type once: 1 − 0.999 computed in float is wrong in its 5th digit.
  template <typename T>
  struct Numbers {
    T rate;  // η / (1 − β₁ᵗ)
    T beta1;
    T rest1;  // 1 − β₁
    T beta2;
    T rest2;   // 1 − β₂
    T unbias;  // 1 / √(1 − β₂ᵗ)
    T epsilon;
    T keep;  // 1 − η λ, with decoupled weight decay λ

    [[gnu::always_inline]] void operator()(T& p, T g, T* slots) const {
      const T mean = beta1 * slots[0] + rest1 * g;
      const T square = beta2 * slots[1] + rest2 * (g * g);
      slots[0] = mean;
      slots[1] = square;
      p = keep * p - rate * mean / (std::sqrt(square) * unbias + epsilon);
    }
  };

  template <typename T>
  Numbers<T> At(const UpdateRule::Step& step) const {
    const double t = static_cast<double>(step.t);
    return {.rate = static_cast<T>(step.learning_rate / (1 - std::pow(beta1, t))),
            .beta1 = static_cast<T>(beta1),
            .rest1 = static_cast<T>(1 - beta1),
            .beta2 = static_cast<T>(beta2),
            .rest2 = static_cast<T>(1 - beta2),
            .unbias = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, t))),
            .epsilon = static_cast<T>(epsilon),
            .keep = static_cast<T>(1 - step.learning_rate * decoupled_decay)};
  }

  double beta1;
  double beta2;
  double epsilon;
  double decoupled_decay;
};

std::unique_ptr<UpdateRule> Make(const RuleSpec& spec) {
  const bool decoupled = spec.kind == RuleKind::kAdamW;
  const AdamFormula formula = {spec.beta1, spec.beta2, spec.epsilon, decoupled ? spec.weight_decay : 0};
  return std::make_unique<ElementRule<AdamFormula>>(spec.kind, formula,
                                                    std::vector<SlotSpec>{{.name = "adam_m"}, {.name = "adam_v"}},
                                                    decoupled ? 0 : spec.weight_decay);
}

constexpr Hyperparameter kHyperparameters[] = {hyperparameters::kBeta1, hyperparameters::kBeta2,
                                               hyperparameters::kEpsilon};

}  // namespace

constinit const RuleDescriptor kAdamRule = {
    .kind = RuleKind::kAdam,
    .name = "adam",
    .standard = [] { return Adam(); },
    .hyperparameters = kHyperparameters,
    .works_on_rows = true,
    .make = Make,
};

constinit const RuleDescriptor kAdamWRule = {
    .kind = RuleKind::kAdamW,
    .name = "adamw",
    .standard = [] { return AdamW(); },
    .hyperparameters = kHyperparameters,
    .make = Make,
};

}  // namespace muster
