#include "muster/checkpoint/element_values.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "muster/base/check.h"

namespace muster {
namespace {

template <typename Stored, typename ToNumber>
void Convert(ByteSpan bytes, std::span<double> into, const ToNumber& to_number) {
  MUSTER_CHECK(bytes.size() == into.size() * sizeof(Stored));
  for (size_t i = 0; i < into.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    into[i] = static_cast<double>(to_number(stored));
  }
}

}  // namespace

float HalfToFloat(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  float magnitude = 0;
  if (exponent == 0x1f) {
    magnitude = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
  }
  return std::copysign(magnitude, (bits & 0x8000) != 0 ? -1.0f : 1.0f);
}

float BFloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

void ElementsToDoubles(DType dtype, ByteSpan bytes, std::span<double> into) {
  const auto as_it_is = [](auto value) { return value; };
  switch (dtype) {
    case DType::kFloat32:
      return Convert<float>(bytes, into, as_it_is);
    case DType::kFloat64:
      return Convert<double>(bytes, into, as_it_is);
    case DType::kFloat16:
      return Convert<uint16_t>(bytes, into, HalfToFloat);
    case DType::kBFloat16:
      return Convert<uint16_t>(bytes, into, BFloat16ToFloat);
    case DType::kInt64:
      return Convert<int64_t>(bytes, into, as_it_is);
    case DType::kUInt8:
      return Convert<uint8_t>(bytes, into, as_it_is);
    case DType::kInt32:
      return Convert<int32_t>(bytes, into, as_it_is);
    case DType::kBool:
      return Convert<uint8_t>(bytes, into, [](uint8_t value) { return value != 0 ? 1 : 0; });
  }
}

}  // namespace muster
