#include "muster/optim/gradient_change.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "muster/base/check.h"
#include "muster/optim/kernels/half.h"

namespace muster {
namespace {

// into[i] ← formula(scale * gradient[i], value[i] - pulled[i]), with elements at any address.
template <typename T, typename Formula>
void ChangeRange(const std::byte* value, const std::byte* pulled, const std::byte* gradient, size_t count, T scale,
                 const Formula& formula, std::byte* into) {
  const auto at = [](const std::byte* bytes, size_t i) {
    T element;
    std::memcpy(&element, bytes + i * sizeof(T), sizeof(T));
    return element;
  };
  for (size_t i = 0; i < count; ++i) {
    const T changed = formula(static_cast<T>(scale * at(gradient, i)), static_cast<T>(at(value, i) - at(pulled, i)));
    std::memcpy(into + i * sizeof(T), &changed, sizeof(T));
  }
}

// For a whole block that has its pulled copy: into ← formula(scaled gradient, value - pulled), element by element, in
// the elements' type; halves in float, rounded once. `formula` takes two floats or two doubles and returns one of the
// same type.
template <typename Formula>
void ChangeElements(const GradientChange::Block& block, const Formula& formula, MutableByteSpan into) {
  MUSTER_CHECK(IsFloatingPoint(block.dtype));
  MUSTER_CHECK(block.value.size() == into.size() && block.pulled.size() == into.size() &&
               block.gradient.size() == into.size());
  const std::byte* const value = block.value.data();
  const std::byte* const pulled = block.pulled.data();
  const std::byte* const gradient = block.gradient.data();
  if (block.dtype == DType::kFloat64)
    return ChangeRange<double>(value, pulled, gradient, into.size() / sizeof(double), block.scale, formula,
                               into.data());
  const auto scale = static_cast<float>(block.scale);
  if (block.dtype == DType::kFloat32)
    return ChangeRange<float>(value, pulled, gradient, into.size() / sizeof(float), scale, formula, into.data());
  HalfBlock values, copies, gradients, changed;
  const auto bytes = [](HalfBlock& floats) { return reinterpret_cast<std::byte*>(floats.data()); };
  for (size_t from = 0; from < into.size(); from += kHalfBlock * kHalfBytes) {
    const size_t count = std::min(kHalfBlock, (into.size() - from) / kHalfBytes);
    FloatsFromHalves(block.dtype, value + from, values.data(), count);
    FloatsFromHalves(block.dtype, pulled + from, copies.data(), count);
    FloatsFromHalves(block.dtype, gradient + from, gradients.data(), count);
    ChangeRange<float>(bytes(values), bytes(copies), bytes(gradients), count, scale, formula, bytes(changed));
    HalvesFromFloats(block.dtype, changed.data(), into.data() + from, count);
  }
}

}  // namespace

void DelayCompensation::Change(const Block& block, MutableByteSpan into) const {
  const auto compensated = [c = compensation_](auto g, auto moved) {
    return g + static_cast<decltype(g)>(c) * g * g * moved;
  };
  ChangeElements(block, compensated, into);
}

// Computes in double for every type: as a float a small γ would be 0, and a weight that hasn't moved would give 0 / 0.
void AdaptiveDelta::Change(const Block& block, MutableByteSpan into) const {
  const auto smaller = [gamma = gamma_](auto delta, auto moved) {
    const auto distance = static_cast<double>(moved);
    return static_cast<decltype(delta)>(delta / (distance * distance / gamma + 1));
  };
  ChangeElements(block, smaller, into);
}

}  // namespace muster
