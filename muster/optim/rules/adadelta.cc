#include <cmath>

#include "muster/optim/element_rule.h"
#include "muster/optim/rules.h"

namespace muster {
namespace {

struct Adadelta {
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

}  // namespace

std::unique_ptr<UpdateRule> MakeAdadelta(const RuleSpec& spec) {
  return std::make_unique<ElementRule<Adadelta>>(
      spec.kind, Adadelta{spec.rho, spec.epsilon},
      std::vector<SlotSpec>{{.name = "adadelta_square"}, {.name = "adadelta_delta"}}, spec.weight_decay);
}

}  // namespace muster
