// p ← p + g: for deltas. Neither learning rate nor weight decay.
#include "muster/optim/element_rule.h"
#include "muster/optim/rule_descriptor.h"
#include "muster/optim/rule_options.h"

namespace muster {
namespace {

struct AddFormula {
  static constexpr size_t kSlots = 0;

  template <typename T>
  struct Numbers {
    [[gnu::always_inline]] void operator()(T& p, T g, T*) const { p = p + g; }
  };

  template <typename T>
  Numbers<T> At(const UpdateRule::Step&) const {
    return {};
  }
};

// T is unsigned, so that sums wrap around.
struct WholeNumbersLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(Loose<T>* __restrict p, const Loose<T>* __restrict g, size_t count) {
    for (size_t i = 0; i < count; ++i) p[i].value = static_cast<T>(p[i].value + g[i].value);
  }
};

class AddRule final : public ElementRule<AddFormula> {
 public:
  using ElementRule::ElementRule;

  void Apply(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots, ByteSpan gradient,
             const Step& step) const override {
    if (dtype == DType::kInt64) {
      ApplyWholeNumbers<uint64_t>(value, gradient);
    } else if (dtype == DType::kUInt8) {
      ApplyWholeNumbers<uint8_t>(value, gradient);
    } else {
      ElementRule::Apply(dtype, value, slots, gradient, step);
    }
  }

 private:
  template <typename T>
  static void ApplyWholeNumbers(MutableByteSpan value, ByteSpan gradient) {
    const size_t count = gradient.size() / sizeof(T);
    RunLoop<WholeNumbersLoop>(Elements<T>(value, count), Elements<T>(gradient, count), count);
  }
};

std::unique_ptr<UpdateRule> Make(const RuleSpec& spec) {
  return std::make_unique<AddRule>(spec.kind, AddFormula{}, std::vector<SlotSpec>{}, 0);
}

}  // namespace

constinit const RuleDescriptor kAddRule = {
    .kind = RuleKind::kAdd,
    .name = "add",
    .standard = [] { return PlainAdd(); },
    .has_rate = false,
    .takes_whole_numbers = true,
    .make = Make,
};

}  // namespace muster
