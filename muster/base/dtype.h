// Element types of variables: their names in files and messages, and their sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

// The numbers are part of the wire format and of the arena: never renumber.
enum class DType : uint8_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kFloat16 = 3,
  kBFloat16 = 4,
  kInt64 = 5,
  kUInt8 = 6,
  kInt32 = 7,
  kBool = 8,
};

// Returns the bytes of one element.
size_t DTypeSize(DType dtype);

// Returns "float32", "float64", "float16", "bfloat16", "int64", "uint8", "int32" or "bool".
std::string DTypeName(DType dtype);

// InvalidArgument lists the accepted names.
absl::StatusOr<DType> ParseDType(std::string_view name);

// True for the types that the store can apply an update rule to.
bool IsFloatingPoint(DType dtype);

}  // namespace muster
