#include "muster/optim/kernel.h"
#include "muster/optim/rules.h"

namespace muster {
namespace {

struct SgdLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(Loose<T>* __restrict p, const Loose<T>* __restrict g, size_t count, T rate) {
    for (size_t i = 0; i < count; ++i) p[i].value = p[i].value - rate * g[i].value;
  }
};

class Sgd final : public UpdateRule {
 public:
  const std::vector<SlotSpec>& slots() const override { return slots_; }

  void Apply(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots, ByteSpan gradient,
             const Step& step) const override {
    MUSTER_CHECK(slots.empty());
    WithElementType(dtype, [&](auto zero) {
      using T = decltype(zero);
      const size_t count = gradient.size() / sizeof(T);
      RunLoop<SgdLoop>(Elements<T>(value, count), Elements<T>(gradient, count), count,
                       static_cast<T>(step.learning_rate));
    });
  }

 private:
  const std::vector<SlotSpec> slots_{};  // clang wants the braces to default-construct a constant
};

}  // namespace

std::unique_ptr<UpdateRule> MakeSgd() { return std::make_unique<Sgd>(); }

}  // namespace muster
