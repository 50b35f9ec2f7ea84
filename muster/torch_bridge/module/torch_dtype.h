// Converts between torch's element types and ours. Thread-safe.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "muster/base/dtype.h"

namespace muster {

// Returns nullopt for a type that variables can't have (complex, quantized, float8, …).
inline std::optional<DType> DTypeFromTorch(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return DType::kFloat32;
    case c10::ScalarType::Double:
      return DType::kFloat64;
    case c10::ScalarType::Half:
      return DType::kFloat16;
    case c10::ScalarType::BFloat16:
      return DType::kBFloat16;
    case c10::ScalarType::Long:
      return DType::kInt64;
    case c10::ScalarType::Byte:
      return DType::kUInt8;
    case c10::ScalarType::Int:
      return DType::kInt32;
    case c10::ScalarType::Bool:
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

inline c10::ScalarType TorchDType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return c10::ScalarType::Float;
    case DType::kFloat64:
      return c10::ScalarType::Double;
    case DType::kFloat16:
      return c10::ScalarType::Half;
    case DType::kBFloat16:
      return c10::ScalarType::BFloat16;
    case DType::kInt64:
      return c10::ScalarType::Long;
    case DType::kUInt8:
      return c10::ScalarType::Byte;
    case DType::kInt32:
      return c10::ScalarType::Int;
    case DType::kBool:
      return c10::ScalarType::Bool;
  }
  return c10::ScalarType::Undefined;
}

}  // namespace muster
