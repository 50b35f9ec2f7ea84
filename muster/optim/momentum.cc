#include "muster/optim/kernel.h"
#include "muster/optim/rules.h"

namespace muster {
namespace {

struct MomentumLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(Loose<T>* __restrict p, Loose<T>* __restrict v, const Loose<T>* __restrict g,
                                         size_t count, T rate, T momentum) {
    for (size_t i = 0; i < count; ++i) {
      const T velocity = momentum * v[i].value + g[i].value;
      v[i].value = velocity;
      p[i].value = p[i].value - rate * velocity;
    }
  }
};

struct NesterovLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(Loose<T>* __restrict p, Loose<T>* __restrict v, const Loose<T>* __restrict g,
                                         size_t count, T rate, T momentum) {
    for (size_t i = 0; i < count; ++i) {
      const T velocity = momentum * v[i].value + g[i].value;
      v[i].value = velocity;
      p[i].value = p[i].value - rate * (g[i].value + momentum * velocity);
    }
  }
};

class Momentum final : public UpdateRule {
 public:
  Momentum(double momentum, bool nesterov) : momentum_(momentum), nesterov_(nesterov) {}

  const std::vector<SlotSpec>& slots() const override { return slots_; }

  void Apply(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots, ByteSpan gradient,
             const Step& step) const override {
    MUSTER_CHECK(slots.size() == 1);
    WithElementType(dtype, [&](auto zero) {
      using T = decltype(zero);
      const size_t count = gradient.size() / sizeof(T);
      auto* p = Elements<T>(value, count);
      auto* v = Elements<T>(slots[0], count);
      const auto* g = Elements<T>(gradient, count);
      const T rate = static_cast<T>(step.learning_rate);
      const T momentum = static_cast<T>(momentum_);
      if (nesterov_) {
        RunLoop<NesterovLoop>(p, v, g, count, rate, momentum);
      } else {
        RunLoop<MomentumLoop>(p, v, g, count, rate, momentum);
      }
    });
  }

 private:
  const double momentum_;
  const bool nesterov_;
  const std::vector<SlotSpec> slots_ = {{.name = "momentum"}};
};

}  // namespace

std::unique_ptr<UpdateRule> MakeMomentum(double momentum, bool nesterov) {
  return std::make_unique<Momentum>(momentum, nesterov);
}

}  // namespace muster
