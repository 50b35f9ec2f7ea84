// v ← μ v + g;  p ← p − η v, or with Nesterov's look-ahead p ← p − η (g + μ v). This is TensorFlow's MomentumOptimizer
// and torch::optim::SGD with momentum and no dampening.
#include "muster/optim/element_rule.h"
#include "muster/optim/rule_descriptor.h"
#include "muster/optim/rule_options.h"

namespace muster {
namespace {

template <bool kNesterov>
struct MomentumFormula {
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
  return std::make_unique<ElementRule<MomentumFormula<kNesterov>>>(spec.kind, MomentumFormula<kNesterov>{spec.momentum},
                                                                   std::vector<SlotSpec>{{.name = "momentum"}},
                                                                   spec.weight_decay);
}

std::unique_ptr<UpdateRule> Make(const RuleSpec& spec) { return spec.nesterov ? Make<true>(spec) : Make<false>(spec); }

constexpr Hyperparameter kHyperparameters[] = {hyperparameters::kMomentum, hyperparameters::kNesterov};

absl::Status Check(const RuleSpec& spec) {
  if (!spec.nesterov || spec.momentum != 0) return absl::OkStatus();
  return RefuseHyperparameter(spec.kind, "momentum", 0, "above 0 and below 1 where nesterov is on");
}

}  // namespace

constinit const RuleDescriptor kMomentumRule = {
    .kind = RuleKind::kMomentum,
    .name = "momentum",
    .standard = [] { return Momentum(); },
    .hyperparameters = kHyperparameters,
    .check = Check,
    .works_on_rows = true,
    .make = Make,
};

}  // namespace muster
