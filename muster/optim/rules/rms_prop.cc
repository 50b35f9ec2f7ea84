// Hinton's lecture 6e, as torch::optim::RMSprop: s ← ρ s + (1 − ρ) g²;  u = g / (√s + ε), if centered (Graves, arXiv
// 1308.0850, equation 40) with √(s − m²) where m ← ρ m + (1 − ρ) g;  p ← p − η u, with momentum v ← μ v + u;
// p ← p − η v. Where rounding brings s − m² below 0 it is taken as 0 (torch gets NaN).
#include <cmath>

#include "muster/optim/element_rule.h"
#include "muster/optim/rule_descriptor.h"
#include "muster/optim/rule_options.h"

namespace muster {
namespace {

template <bool kCentered, bool kMomentum>
struct RmsPropFormula {
  static constexpr size_t kSlots = 1 + kCentered + kMomentum;

  template <typename T>
  struct Numbers {
    T rate;
    T rho;
    T rest;  // 1 − ρ
    T epsilon;
    T momentum;

    [[gnu::always_inline]] void operator()(T& p, T g, T* slots) const {
      const T square = rho * slots[0] + rest * (g * g);
      slots[0] = square;
      T variance = square;
      if constexpr (kCentered) {
        const T mean = rho * slots[1] + rest * g;
        slots[1] = mean;
        variance = square - mean * mean;
        variance = variance < 0 ? 0 : variance;  // negative by rounding
      }
      const T move = g / (std::sqrt(variance) + epsilon);
      if constexpr (kMomentum) {
        const T velocity = momentum * slots[kSlots - 1] + move;
        slots[kSlots - 1] = velocity;
        p = p - rate * velocity;
      } else {
        p = p - rate * move;
      }
    }
  };

  template <typename T>
  Numbers<T> At(const UpdateRule::Step& step) const {
    return {static_cast<T>(step.learning_rate), static_cast<T>(rho), static_cast<T>(1 - rho), static_cast<T>(epsilon),
            static_cast<T>(momentum)};
  }

  double rho;
  double epsilon;
  double momentum;
};

template <bool kCentered, bool kMomentum>
std::unique_ptr<UpdateRule> Make(const RuleSpec& spec) {
  using Formula = RmsPropFormula<kCentered, kMomentum>;
  std::vector<SlotSpec> slots = {{.name = "rmsprop_square"}};
  if (kCentered) slots.push_back({.name = "rmsprop_mean"});
  if (kMomentum) slots.push_back({.name = "rmsprop_momentum"});
  return std::make_unique<ElementRule<Formula>>(spec.kind, Formula{spec.rho, spec.epsilon, spec.momentum},
                                                std::move(slots), spec.weight_decay);
}

std::unique_ptr<UpdateRule> Make(const RuleSpec& spec) {
  if (spec.centered) return spec.momentum > 0 ? Make<true, true>(spec) : Make<true, false>(spec);
  return spec.momentum > 0 ? Make<false, true>(spec) : Make<false, false>(spec);
}

constexpr Hyperparameter kHyperparameters[] = {hyperparameters::kMomentum, hyperparameters::kRho,
                                               hyperparameters::kEpsilon, hyperparameters::kCentered};

}  // namespace

constinit const RuleDescriptor kRmsPropRule = {
    .kind = RuleKind::kRmsProp,
    .name = "rmsprop",
    .standard = [] { return RmsProp(); },
    .hyperparameters = kHyperparameters,
    .make = Make,
};

}  // namespace muster
