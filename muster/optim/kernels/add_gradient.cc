#include "muster/optim/kernels/add_gradient.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "muster/optim/kernels/half.h"

namespace muster {
namespace {

template <typename T>
std::span<T> As(MutableByteSpan bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <typename T>
void AddElements(std::span<T> sum, const std::byte* gradient, T scale) {
  for (size_t i = 0; i < sum.size(); ++i) {
    T element;
    std::memcpy(&element, gradient + i * sizeof(T), sizeof(T));
    sum[i] += scale * element;
  }
}

}  // namespace

void AddGradient(DType dtype, MutableByteSpan sum, ByteSpan gradient, double scale) {
  if (dtype == DType::kFloat64) return AddElements(As<double>(sum), gradient.data(), scale);
  const auto narrow = static_cast<float>(scale);
  if (DTypeSize(dtype) != kHalfBytes) return AddElements(As<float>(sum), gradient.data(), narrow);
  for (size_t from = 0; from < As<float>(sum).size(); from += kHalfBlock) {
    const std::span<float> part = As<float>(sum).subspan(from, std::min(kHalfBlock, As<float>(sum).size() - from));
    HalfBlock floats;
    FloatsFromHalves(dtype, gradient.data() + from * kHalfBytes, floats.data(), part.size());
    AddElements(part, reinterpret_cast<const std::byte*>(floats.data()), narrow);
  }
}

}  // namespace muster
