#include "muster/store/model/wire_precision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "muster/base/check.h"
#include "muster/optim/kernels/half.h"

namespace muster {
namespace {

constexpr std::array<std::string_view, kWirePrecisions> kNames = {"fp32", "bf16", "fp16"};

// The smallest magnitudes that round to infinity: half a step above the largest finite value.
constexpr float kFloat16Overflow = 65520;
constexpr float kBFloat16Overflow = 0x1.ffp127F;

size_t Floats(ByteSpan memory) { return memory.size() / sizeof(float); }

}  // namespace

std::optional<WirePrecision> ParseWirePrecision(std::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<WirePrecision>(found - kNames.begin());
}

std::string WirePrecisionName(WirePrecision precision) { return std::string(kNames[static_cast<size_t>(precision)]); }

WireForm::WireForm(WirePrecision precision, const VariableSpec& variable) : type_(variable.dtype) {
  narrow_ = precision != WirePrecision::kFull && variable.kind == VariableKind::kTrainable &&
            variable.dtype == DType::kFloat32;
  if (narrow_) type_ = precision == WirePrecision::kBFloat16 ? DType::kBFloat16 : DType::kFloat16;
}

void WireForm::Write(ByteSpan memory, MutableByteSpan wire) const {
  MUSTER_CHECK(wire.size() == bytes(memory.size()));
  if (memory.empty()) return;
  if (!narrow()) {
    std::memcpy(wire.data(), memory.data(), memory.size());
  } else {
    HalvesFromFloats(type_, reinterpret_cast<const float*>(memory.data()), wire.data(), Floats(memory));
  }
}

void WireForm::Read(ByteSpan wire, MutableByteSpan memory) const {
  MUSTER_CHECK(wire.size() == bytes(memory.size()));
  if (memory.empty()) return;
  if (!narrow()) {
    std::memcpy(memory.data(), wire.data(), memory.size());
  } else {
    FloatsFromHalves(type_, wire.data(), reinterpret_cast<float*>(memory.data()), Floats(memory));
  }
}

ByteSpan WireForm::Widened(ByteSpan wire, MutableByteSpan room) const {
  if (!narrow()) return wire;
  const MutableByteSpan memory = room.first(wire.size() * 2);
  Read(wire, memory);
  return memory;
}

bool WireForm::Overflows(ByteSpan memory, double sum_of_squares) const {
  if (!narrow()) return false;
  const float limit = type_ == DType::kFloat16 ? kFloat16Overflow : kBFloat16Overflow;
  // No element is larger than the root of the sum.
  if (sum_of_squares < static_cast<double>(limit) * limit) return false;
  bool overflows = false;
  for (size_t i = 0; i < Floats(memory); ++i) {
    float element = 0;
    std::memcpy(&element, memory.data() + i * sizeof element, sizeof element);
    overflows |= std::fabs(element) >= limit && std::isfinite(element);
  }
  return overflows;
}

}  // namespace muster
