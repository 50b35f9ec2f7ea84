// p ← p − η g
#include "muster/optim/element_rule.h"
#include "muster/optim/rule_descriptor.h"
#include "muster/optim/rule_options.h"

namespace muster {
namespace {

struct SgdFormula {
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

std::unique_ptr<UpdateRule> Make(const RuleSpec& spec) {
  return std::make_unique<ElementRule<SgdFormula>>(spec.kind, SgdFormula{}, std::vector<SlotSpec>{}, spec.weight_decay);
}

}  // namespace

constinit const RuleDescriptor kSgdRule = {
    .kind = RuleKind::kSgd,
    .name = "sgd",
    .standard = [] { return Sgd(); },
    .works_on_rows = true,
    .make = Make,
};

}  // namespace muster
