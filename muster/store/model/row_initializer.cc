#include "muster/store/model/row_initializer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "muster/optim/kernels/half.h"

namespace muster {
namespace {

// SplitMix64's n-th output (Steele, Lea, Flood, OOPSLA 2014): computed directly, so that a row doesn't depend on which
// ps makes the rows before it.
uint64_t RandomBits(uint64_t seed, uint64_t n) {
  uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// In (0, 1), from the upper or the lower 32 bits.
double Fraction(uint64_t bits32) { return (static_cast<double>(bits32) + 0.5) / 4294967296.0; }

double ValueAt(const RowInitializer& initial, uint64_t element) {
  const uint64_t bits = RandomBits(initial.seed, element);
  const double a = Fraction(bits >> 32);
  if (initial.kind == RowInitializer::Kind::kUniform) return initial.center + initial.spread * (2 * a - 1);
  // Box–Muller transform.
  const double b = Fraction(bits & 0xffffffff);
  return initial.center + initial.spread * std::sqrt(-2 * std::log(a)) * std::cos(2 * std::numbers::pi * b);
}

void Store(DType dtype, double value, std::byte* into) {
  const auto narrow = static_cast<float>(value);
  if (dtype == DType::kFloat64) {
    std::memcpy(into, &value, sizeof value);
  } else if (dtype == DType::kFloat32) {
    std::memcpy(into, &narrow, sizeof narrow);
  } else {
    HalvesFromFloats(dtype, &narrow, into, 1);
  }
}

}  // namespace

void InitializeRows(const VariableSpec& variable, const PlacedSlice& slice, int64_t first, MutableByteSpan into) {
  const RowInitializer& initial = variable.table.initial;
  if (initial.kind == RowInitializer::Kind::kZeros) {
    std::memset(into.data(), 0, into.size());
    return;
  }
  const int64_t width = variable.row_elements();
  const auto size = static_cast<int64_t>(DTypeSize(variable.dtype));
  const int64_t end = first + static_cast<int64_t>(into.size()) / size;
  std::byte* out = into.data();
  while (first < end) {
    const int64_t in_row = first % width;
    const int64_t count = std::min(width - in_row, end - first);
    const int64_t global = slice.offset + first / width * slice.row_step * width + in_row;
    for (int64_t i = 0; i < count; ++i, out += size)
      Store(variable.dtype, ValueAt(initial, static_cast<uint64_t>(global + i)), out);
    first += count;
  }
}

}  // namespace muster
