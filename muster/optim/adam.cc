#include <cmath>

#include "muster/optim/kernel.h"
#include "muster/optim/rules.h"

namespace muster {
namespace {

// Rounded to the element type once, after the arithmetic in double: 1 − 0.999 taken in float is wrong in its 5th digit.
template <typename T>
struct AdamNumbers {
  T rate;  // η / (1 − β₁ᵗ)
  T beta1;
  T rest1;  // 1 − β₁
  T beta2;
  T rest2;   // 1 − β₂
  T unbias;  // 1 / √(1 − β₂ᵗ)
  T epsilon;
};

struct AdamLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(Loose<T>* __restrict p, Loose<T>* __restrict m, Loose<T>* __restrict v,
                                         const Loose<T>* __restrict g, size_t count, AdamNumbers<T> k) {
    for (size_t i = 0; i < count; ++i) {
      const T gradient = g[i].value;
      const T mean = k.beta1 * m[i].value + k.rest1 * gradient;
      const T square = k.beta2 * v[i].value + k.rest2 * (gradient * gradient);
      m[i].value = mean;
      v[i].value = square;
      p[i].value = p[i].value - k.rate * mean / (std::sqrt(square) * k.unbias + k.epsilon);
    }
  }
};

class Adam final : public UpdateRule {
 public:
  Adam(double beta1, double beta2, double epsilon) : beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {}

  const std::vector<SlotSpec>& slots() const override { return slots_; }

  void Apply(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots, ByteSpan gradient,
             const Step& step) const override {
    MUSTER_CHECK(slots.size() == 2);
    MUSTER_CHECK(step.t >= 1);
    const double t = static_cast<double>(step.t);
    WithElementType(dtype, [&](auto zero) {
      using T = decltype(zero);
      const size_t count = gradient.size() / sizeof(T);
      const AdamNumbers<T> numbers = {.rate = static_cast<T>(step.learning_rate / (1 - std::pow(beta1_, t))),
                                      .beta1 = static_cast<T>(beta1_),
                                      .rest1 = static_cast<T>(1 - beta1_),
                                      .beta2 = static_cast<T>(beta2_),
                                      .rest2 = static_cast<T>(1 - beta2_),
                                      .unbias = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2_, t))),
                                      .epsilon = static_cast<T>(epsilon_)};
      RunLoop<AdamLoop>(Elements<T>(value, count), Elements<T>(slots[0], count), Elements<T>(slots[1], count),
                        Elements<T>(gradient, count), count, numbers);
    });
  }

 private:
  const double beta1_;
  const double beta2_;
  const double epsilon_;
  const std::vector<SlotSpec> slots_ = {{.name = "adam_m"}, {.name = "adam_v"}};
};

}  // namespace

std::unique_ptr<UpdateRule> MakeAdam(double beta1, double beta2, double epsilon) {
  return std::make_unique<Adam>(beta1, beta2, epsilon);
}

}  // namespace muster
