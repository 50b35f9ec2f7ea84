// Zeiler, arXiv 1212.5701, algorithm 1, with torch's learning rate: s ← ρ s + (1 − ρ) g²;  u = √(d + ε) / √(s + ε) · g;
// d ← ρ d + (1 − ρ) u²;  p ← p − η u.
#include <cmath>

#include "muster/optim/element_rule.h"
#include "muster/optim/rule_descriptor.h"
#include "muster/optim/rule_options.h"

namespace muster {
namespace {

struct AdadeltaFormula {
  static constexpr size_t kSlots = 2;

  template <typename T>
  struct Numbers {
    T rate;
    T rho;
    T rest;  // 1 − ρ
    T epsilon;

    [[gnu::always_inline]] void operator()(T& p, T g, T* slots) const {
      const T square = rho * slots[0] + rest * (g * g);
      const T delta = std::sqrt(slots[1] + epsilon) / std::sqrt(square + epsilon) * g;
      slots[0] = square;
      slots[1] = rho * slots[1] + rest * (delta * delta);
      p = p - rate * delta;
    }
  };

  template <typename T>
  Numbers<T> At(const UpdateRule::Step& step) const {
    return {static_cast<T>(step.learning_rate), static_cast<T>(rho), static_cast<T>(1 - rho), static_cast<T>(epsilon)};
  }

  double rho;
  double epsilon;
};

std::unique_ptr<UpdateRule> Make(const RuleSpec& spec) {
  return std::make_unique<ElementRule<AdadeltaFormula>>(
      spec.kind, AdadeltaFormula{spec.rho, spec.epsilon},
      std::vector<SlotSpec>{{.name = "adadelta_square"}, {.name = "adadelta_delta"}}, spec.weight_decay);
}

constexpr Hyperparameter kHyperparameters[] = {hyperparameters::kRho, hyperparameters::kEpsilon};

}  // namespace

constinit const RuleDescriptor kAdadeltaRule = {
    .kind = RuleKind::kAdadelta,
    .name = "adadelta",
    .standard = [] { return Adadelta(); },
    .hyperparameters = kHyperparameters,
    .make = Make,
};

}  // namespace muster
