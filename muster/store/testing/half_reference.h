// For tests of wire precision: converts a number to a half in another way than the code does, and gives numbers to try
// it with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>

#include "muster/store/model/wire_precision.h"

namespace muster {

inline constexpr WirePrecision kAllPrecisions[] = {WirePrecision::kFull, WirePrecision::kBFloat16,
                                                   WirePrecision::kFloat16};

// The reference: returns the half nearest to `x`; of two equally near ones, the one whose last bit is 0. It computes
// with numbers, not bits.
inline float Rounded(WirePrecision precision, float x) {
  if (precision == WirePrecision::kFull || !std::isfinite(x) || x == 0) return x;
  const bool wide = precision == WirePrecision::kBFloat16;
  const int digits = wide ? 8 : 11;
  const int smallest = wide ? -126 : -14;  // exponent of the smallest normal number
  const int exponent = std::max(std::ilogb(x), smallest);
  const double step = std::ldexp(1.0, exponent - digits + 1);
  const double nearest = std::nearbyint(x / step) * step;  // to even, as is the default
  const double largest = wide ? std::ldexp(255.0, 120) : 65504;
  return std::fabs(nearest) > largest ? std::copysign(std::numeric_limits<float>::infinity(), x)
                                      : static_cast<float>(nearest);
}

// Returns all kinds of numbers that a half may have trouble with.
inline float Awkward(size_t i) {
  const float numbers[] = {0.0F,        -0.0F,    1.0F,      1.00390625F, 1.01171875F, 1.0004883F,
                           -3.1415927F, 65504.0F, 1e-3F,     1e-7F,       5.97e-8F,    2.98e-8F,
                           1e-12F,      -6.1e-5F, 123456.0F, -7e-39F,     2049.0F,     0.1F};
  return numbers[i % std::size(numbers)] * static_cast<float>(1 + i / std::size(numbers) % 5);
}

}  // namespace muster
