// How many bits the elements of a variable take on the wire between a worker and a ps. Gradients and parameters that
// are float32 may go as bfloat16 or float16: half the bytes, rounded to nearest even. What a ps keeps (values, slots,
// accumulators) and what a worker computes with stays float32. Only trainable float32 variables are narrowed: halves
// are as short already, and a user who chose float64 wants its bits. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"
#include "muster/cluster/placement/variable_spec.h"
#include "muster/transport/messages/fields.h"

namespace muster {

// The numbers are written to the wire: never renumber.
enum class WirePrecision : uint8_t {
  kFull = 0,      // as in memory
  kBFloat16 = 1,  // the range of float32 with 8 bits of precision: nothing overflows, small values lose their last bits
  // 11 bits of precision, but values above 65,504 become infinite and values below 3e-8 zero: gradients may need a
  // scaled loss, with the learning rate divided by the same factor, which is up to the user.
  kFloat16 = 2,
};
constexpr uint64_t kWirePrecisions = 3;
// It says how long the bulk is, so it can't be left to a later reader of a message.
template <>
inline constexpr EnumValues kAcceptedValues<WirePrecision> = {
    kWirePrecisions, "unknown wire precision; accepted: 0 fp32, 1 bf16, 2 fp16"};

// "fp32", "bf16", "fp16"; nullopt for anything else.
std::optional<WirePrecision> ParseWirePrecision(std::string_view name);
std::string WirePrecisionName(WirePrecision precision);

// For a worker's pushes and pulls.
struct WireOptions {
  WirePrecision gradients = WirePrecision::kFull;   // what a step pushes
  WirePrecision parameters = WirePrecision::kFull;  // what it pulls

  bool narrow() const { return gradients != WirePrecision::kFull || parameters != WirePrecision::kFull; }
};

// How the elements of one variable travel.
class WireForm {
 public:
  WireForm(WirePrecision precision, const VariableSpec& variable);

  // The elements' type on the wire.
  DType type() const { return type_; }
  bool narrow() const { return narrow_; }
  // Bytes on the wire for `in_memory` bytes in memory.
  size_t bytes(size_t in_memory) const { return narrow() ? in_memory / 2 : in_memory; }
  // Returns the part of `wire` that is `size` long in memory, from `offset` in memory on.
  ByteSpan Part(ByteSpan wire, size_t offset, size_t size) const { return wire.subspan(bytes(offset), bytes(size)); }
  MutableByteSpan Part(MutableByteSpan wire, size_t offset, size_t size) const {
    return wire.subspan(bytes(offset), bytes(size));
  }

  // `wire` ← `memory`, narrowed or copied.
  void Write(ByteSpan memory, MutableByteSpan wire) const;
  // `memory` ← `wire`.
  void Read(ByteSpan wire, MutableByteSpan memory) const;
  // Returns `wire` as it is in memory: itself, or read into `room`, whose beginning is then returned.
  ByteSpan Widened(ByteSpan wire, MutableByteSpan room) const;
  // Whether some element, finite in `memory`, becomes infinite when it is narrowed. NaN isn't looked for.
  // `sum_of_squares`: of the elements, which mostly answers it without reading them.
  bool Overflows(ByteSpan memory, double sum_of_squares) const;

 private:
  DType type_;
  bool narrow_ = false;
};

}  // namespace muster
