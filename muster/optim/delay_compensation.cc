#include "muster/optim/delay_compensation.h"

#include <algorithm>
#include <cstring>

#include "muster/base/check.h"
#include "muster/optim/half.h"

namespace muster {
namespace {

template <typename T>
T At(const std::byte* bytes, size_t i) {
  T element;
  std::memcpy(&element, bytes + i * sizeof(T), sizeof(T));
  return element;
}

template <typename T>
void Compensate(const std::byte* value, const std::byte* pulled, const std::byte* gradient, size_t count, T scale,
                T lambda, std::byte* into) {
  for (size_t i = 0; i < count; ++i) {
    const T g = scale * At<T>(gradient, i);
    const T changed = g + lambda * g * g * (At<T>(value, i) - At<T>(pulled, i));
    std::memcpy(into + i * sizeof(T), &changed, sizeof(T));
  }
}

template <typename T>
std::byte* Bytes(T& block) {
  return reinterpret_cast<std::byte*>(block.data());
}

}  // namespace

void DelayCompensation::Change(const Block& block, MutableByteSpan into) const {
  MUSTER_CHECK(IsFloatingPoint(block.dtype));
  MUSTER_CHECK(block.value.size() == into.size() && block.pulled.size() == into.size() &&
               block.gradient.size() == into.size());
  if (block.dtype == DType::kFloat64)
    return Compensate<double>(block.value.data(), block.pulled.data(), block.gradient.data(),
                              into.size() / sizeof(double), block.scale, lambda_, into.data());
  const auto scale = static_cast<float>(block.scale);
  const auto lambda = static_cast<float>(lambda_);
  if (block.dtype == DType::kFloat32)
    return Compensate<float>(block.value.data(), block.pulled.data(), block.gradient.data(),
                             into.size() / sizeof(float), scale, lambda, into.data());
  HalfBlock value, pulled, gradient, changed;
  for (size_t from = 0; from < into.size(); from += kHalfBlock * kHalfBytes) {
    const size_t count = std::min(kHalfBlock, (into.size() - from) / kHalfBytes);
    FloatsFromHalves(block.dtype, block.value.data() + from, value.data(), count);
    FloatsFromHalves(block.dtype, block.pulled.data() + from, pulled.data(), count);
    FloatsFromHalves(block.dtype, block.gradient.data() + from, gradient.data(), count);
    Compensate<float>(Bytes(value), Bytes(pulled), Bytes(gradient), count, scale, lambda, Bytes(changed));
    HalvesFromFloats(block.dtype, changed.data(), into.data() + from, count);
  }
}

}  // namespace muster
