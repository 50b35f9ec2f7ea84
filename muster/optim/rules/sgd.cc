#include "muster/optim/element_rule.h"
#include "muster/optim/rules.h"

namespace muster {
namespace {

struct Sgd {
  static constexpr size_t kSlots = 0;

  template <typename T>
  struct Numbers {
    T rate;

    [[gnu::always_inline]] void operator()(T& p, T g, T*) const { p = p - rate * g; }
  };

  template <typename T>
  Numbers<T> At(const UpdateRule::Step& step) const {
    return {static_cast<T>(step.learning_rate)};
  }
};

}  // namespace

std::unique_ptr<UpdateRule> MakeSgd(const RuleSpec& spec) {
  return std::make_unique<ElementRule<Sgd>>(spec.kind, Sgd{}, std::vector<SlotSpec>{}, spec.weight_decay);
}

}  // namespace muster
