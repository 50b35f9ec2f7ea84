#include "muster/optim/kernels/half.h"

#include <bit>
#include <cstdint>

#include "muster/base/check.h"
#include "muster/optim/kernels/kernel.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace muster {
namespace {

using Half = Loose<uint16_t>;

// Has no branches, so that the loops are vectorised, and meets no denormal float, so that a processor set to flush them
// gives the same result. Rounding and NaN (quiet, upper bits kept) are as in F16C.
[[gnu::always_inline]] inline float FloatFromFloat16(uint16_t half) {
  constexpr uint32_t kExponent = 0x7c00 << 13;
  uint32_t bits = static_cast<uint32_t>(half & 0x7fff) << 13;
  const uint32_t exponent = bits & kExponent;
  bits += (127 - 15) << 23;
  const uint32_t special = bits + ((128 - 16) << 23) + (((bits & 0x7fffff) != 0) ? 0x400000u & ~bits : 0);
  const uint32_t denormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(bits + (1 << 23)) - std::bit_cast<float>(uint32_t{113 << 23}));
  bits = exponent == kExponent ? special : exponent == 0 ? denormal : bits;
  return std::bit_cast<float>(bits | static_cast<uint32_t>(half & 0x8000) << 16);
}

[[gnu::always_inline]] inline uint16_t Float16FromFloat(float value) {
  constexpr uint32_t kInfinity = 255u << 23;
  constexpr uint32_t kTooLarge = (127 + 16) << 23;
  constexpr uint32_t kSmallestNormal = 113 << 23;
  constexpr uint32_t kAlign = ((127 - 15) + (23 - 10) + 1) << 23;  // adding it moves a denormal's bits into place
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t special = magnitude > kInfinity ? 0x7e00 | ((magnitude >> 13) & 0x3ff) : 0x7c00;
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kAlign)) - kAlign;
  const uint32_t normal = (magnitude - ((127 - 15) << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  const uint32_t half = magnitude >= kTooLarge ? special : magnitude < kSmallestNormal ? small : normal;
  return static_cast<uint16_t>(half | (bits >> 16 & 0x8000));
}

[[gnu::always_inline]] inline float FloatFromBFloat16(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

[[gnu::always_inline]] inline uint16_t BFloat16FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const uint32_t quiet_nan = (bits >> 16) | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

struct FromFloat16Loop {
  [[gnu::always_inline]] static void Run(const Half* __restrict halves, float* __restrict floats, size_t count) {
    for (size_t i = 0; i < count; ++i) floats[i] = FloatFromFloat16(halves[i].value);
  }
};
struct ToFloat16Loop {
  [[gnu::always_inline]] static void Run(const float* __restrict floats, Half* __restrict halves, size_t count) {
    for (size_t i = 0; i < count; ++i) halves[i].value = Float16FromFloat(floats[i]);
  }
};
struct FromBFloat16Loop {
  [[gnu::always_inline]] static void Run(const Half* __restrict halves, float* __restrict floats, size_t count) {
    for (size_t i = 0; i < count; ++i) floats[i] = FloatFromBFloat16(halves[i].value);
  }
};
struct ToBFloat16Loop {
  [[gnu::always_inline]] static void Run(const float* __restrict floats, Half* __restrict halves, size_t count) {
    for (size_t i = 0; i < count; ++i) halves[i].value = BFloat16FromFloat(floats[i]);
  }
};

#if defined(__x86_64__)
// AVX2 implies that the operating system saves the wide registers, which F16C also needs.
bool HasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

__attribute__((target("avx2,f16c"))) void FromFloat16WithF16c(const Half* halves, float* floats, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(floats + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i))));
  for (; i < count; ++i) floats[i] = FloatFromFloat16(halves[i].value);
}

__attribute__((target("avx2,f16c"))) void ToFloat16WithF16c(const float* floats, Half* halves, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(floats + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < count; ++i) halves[i].value = Float16FromFloat(floats[i]);
}
#endif

}  // namespace

void FloatsFromHalves(DType dtype, const std::byte* halves, float* floats, size_t count) {
#if defined(__x86_64__)
  static const bool has_f16c = HasF16c();
  if (dtype == DType::kFloat16 && has_f16c)
    return FromFloat16WithF16c(reinterpret_cast<const Half*>(halves), floats, count);
#endif
  PortableFloatsFromHalves(dtype, halves, floats, count);
}

void HalvesFromFloats(DType dtype, const float* floats, std::byte* halves, size_t count) {
#if defined(__x86_64__)
  static const bool has_f16c = HasF16c();
  if (dtype == DType::kFloat16 && has_f16c) return ToFloat16WithF16c(floats, reinterpret_cast<Half*>(halves), count);
#endif
  PortableHalvesFromFloats(dtype, floats, halves, count);
}

void PortableFloatsFromHalves(DType dtype, const std::byte* halves, float* floats, size_t count) {
  MUSTER_CHECK(dtype == DType::kFloat16 || dtype == DType::kBFloat16);
  const Half* from = reinterpret_cast<const Half*>(halves);
  if (dtype == DType::kFloat16) {
    RunLoop<FromFloat16Loop>(from, floats, count);
  } else {
    RunLoop<FromBFloat16Loop>(from, floats, count);
  }
}

void PortableHalvesFromFloats(DType dtype, const float* floats, std::byte* halves, size_t count) {
  MUSTER_CHECK(dtype == DType::kFloat16 || dtype == DType::kBFloat16);
  Half* to = reinterpret_cast<Half*>(halves);
  if (dtype == DType::kFloat16) {
    RunLoop<ToFloat16Loop>(floats, to, count);
  } else {
    RunLoop<ToBFloat16Loop>(floats, to, count);
  }
}

}  // namespace muster
