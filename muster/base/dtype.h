// Element types of variables: name as written in files and messages, and size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

// The numbers are written to the wire and to the arena: never renumber.
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

// Bytes of one element.
size_t DTypeSize(DType dtype);

// "float32", "float64", "float16", "bfloat16", "int64", "uint8", "int32", "bool".
std::string DTypeName(DType dtype);

// InvalidArgument naming the accepted names.
absl::StatusOr<DType> ParseDType(std::string_view name);

// True for the types an update rule can be applied to in the store.
bool IsFloatingPoint(DType dtype);

}  // namespace muster
