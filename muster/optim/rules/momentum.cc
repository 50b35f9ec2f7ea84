#include "muster/optim/element_rule.h"
#include "muster/optim/rules.h"

namespace muster {
namespace {

template <bool kNesterov>
struct Momentum {
  static constexpr size_t kSlots = 1;

  template <typename T>
  struct Numbers {
    T rate;
    T momentum;

    [[gnu::always_inline]] void operator()(T& p, T g, T* slots) const {
      const T velocity = momentum * slots[0] + g;
      slots[0] = velocity;
      p = p - rate * (kNesterov ? g + momentum * velocity : velocity);
    }
  };

  template <typename T>
  Numbers<T> At(const UpdateRule::Step& step) const {
    return {static_cast<T>(step.learning_rate), static_cast<T>(momentum)};
  }

  double momentum;
};

template <bool kNesterov>
std::unique_ptr<UpdateRule> Make(const RuleSpec& spec) {
  return std::make_unique<ElementRule<Momentum<kNesterov>>>(
      spec.kind, Momentum<kNesterov>{spec.momentum}, std::vector<SlotSpec>{{.name = "momentum"}}, spec.weight_decay);
}

}  // namespace

std::unique_ptr<UpdateRule> MakeMomentum(const RuleSpec& spec) {
  return spec.nesterov ? Make<true>(spec) : Make<false>(spec);
}

}  // namespace muster
