#include "muster/collective/rank_sum.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "muster/base/check.h"
#include "muster/optim/kernels/half.h"
#include "muster/optim/kernels/kernel.h"

namespace muster {
namespace {

// A block is added up in the first-level cache, so that a result may overwrite a contribution without telling the
// compiler what overlaps.
template <typename T>
constexpr size_t kBlock = 8192 / sizeof(T);

template <typename T>
using Block = std::array<T, kBlock<T>>;

struct SumOfTwoLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(T* __restrict sum, const Loose<T>* __restrict a, const Loose<T>* __restrict b,
                                         size_t count) {
    for (size_t i = 0; i < count; ++i) sum[i] = a[i].value + b[i].value;
  }
};

struct AddLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(T* __restrict sum, const Loose<T>* __restrict more, size_t count) {
    for (size_t i = 0; i < count; ++i) sum[i] += more[i].value;
  }
};

struct DivideLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(T* __restrict sum, T by, size_t count) {
    for (size_t i = 0; i < count; ++i) sum[i] /= by;
  }
};

template <typename T>
const Loose<T>* At(const std::byte* bytes, size_t from) {
  return reinterpret_cast<const Loose<T>*>(bytes) + from;
}

void Put(const void* block, size_t bytes, size_t at, std::byte* first, std::byte* second) {
  if (first != nullptr) std::memcpy(first + at, block, bytes);
  if (second != nullptr) std::memcpy(second + at, block, bytes);
}

template <typename T>
void SumWhole(Reduction reduction, std::span<const std::byte* const> contributions, size_t elements, std::byte* first,
              std::byte* second) {
  Block<T> sum;
  for (size_t from = 0; from < elements; from += sum.size()) {
    const size_t some = std::min(sum.size(), elements - from);
    if (contributions.size() == 1) {
      std::memcpy(sum.data(), At<T>(contributions[0], from), some * sizeof(T));
    } else {
      RunLoop<SumOfTwoLoop>(sum.data(), At<T>(contributions[0], from), At<T>(contributions[1], from), some);
    }
    for (size_t r = 2; r < contributions.size(); ++r) RunLoop<AddLoop>(sum.data(), At<T>(contributions[r], from), some);
    if (reduction == Reduction::kMean) RunLoop<DivideLoop>(sum.data(), static_cast<T>(contributions.size()), some);
    Put(sum.data(), some * sizeof(T), from * sizeof(T), first, second);
  }
}

void SumHalves(DType dtype, Reduction reduction, std::span<const std::byte* const> contributions, size_t elements,
               std::byte* first, std::byte* second) {
  HalfBlock sum, more;
  std::array<std::byte, kHalfBlock * kHalfBytes> rounded;
  for (size_t from = 0; from < elements; from += kHalfBlock) {
    const size_t some = std::min(kHalfBlock, elements - from);
    FloatsFromHalves(dtype, contributions[0] + from * kHalfBytes, sum.data(), some);
    for (size_t r = 1; r < contributions.size(); ++r) {
      FloatsFromHalves(dtype, contributions[r] + from * kHalfBytes, more.data(), some);
      RunLoop<AddLoop>(sum.data(), reinterpret_cast<const Loose<float>*>(more.data()), some);
    }
    if (reduction == Reduction::kMean) RunLoop<DivideLoop>(sum.data(), static_cast<float>(contributions.size()), some);
    HalvesFromFloats(dtype, sum.data(), rounded.data(), some);
    Put(rounded.data(), some * kHalfBytes, from * kHalfBytes, first, second);
  }
}

}  // namespace

void SumOfRanks(DType dtype, Reduction reduction, std::span<const std::byte* const> contributions, size_t elements,
                std::byte* first, std::byte* second) {
  MUSTER_CHECK(IsFloatingPoint(dtype) && !contributions.empty());
  if (dtype == DType::kFloat32) return SumWhole<float>(reduction, contributions, elements, first, second);
  if (dtype == DType::kFloat64) return SumWhole<double>(reduction, contributions, elements, first, second);
  SumHalves(dtype, reduction, contributions, elements, first, second);
}

void DivideBy(DType dtype, int by, std::byte* elements, size_t count) {
  if (dtype == DType::kFloat64) {
    RunLoop<DivideLoop>(reinterpret_cast<double*>(elements), static_cast<double>(by), count);
  } else {
    RunLoop<DivideLoop>(reinterpret_cast<float*>(elements), static_cast<float>(by), count);
  }
}

}  // namespace muster
