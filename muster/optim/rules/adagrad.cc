#include <cmath>

#include "muster/optim/element_rule.h"
#include "muster/optim/rules.h"

namespace muster {
namespace {

struct Adagrad {
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

}  // namespace

std::unique_ptr<UpdateRule> MakeAdagrad(const RuleSpec& spec) {
  return std::make_unique<ElementRule<Adagrad>>(
      spec.kind, Adagrad{spec.learning_rate_decay, spec.epsilon},
      std::vector<SlotSpec>{{.name = "adagrad_sum", .initial_value = spec.initial_accumulator}}, spec.weight_decay);
}

}  // namespace muster
