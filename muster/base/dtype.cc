#include "muster/base/dtype.h"

#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"

namespace muster {
namespace {

struct Entry {
  DType dtype;
  const char* name;
  size_t size;
};

constexpr std::array<Entry, 8> kTypes = {{
    {DType::kFloat32, "float32", 4},
    {DType::kFloat64, "float64", 8},
    {DType::kFloat16, "float16", 2},
    {DType::kBFloat16, "bfloat16", 2},
    {DType::kInt64, "int64", 8},
    {DType::kUInt8, "uint8", 1},
    {DType::kInt32, "int32", 4},
    {DType::kBool, "bool", 1},
}};

const Entry& Find(DType dtype) {
  for (const Entry& entry : kTypes)
    if (entry.dtype == dtype) return entry;
  MUSTER_CHECK(false && "not a DType: validate what comes from outside with ParseDType");
  return kTypes[0];
}

}  // namespace

size_t DTypeSize(DType dtype) { return Find(dtype).size; }

std::string DTypeName(DType dtype) { return Find(dtype).name; }

absl::StatusOr<DType> ParseDType(std::string_view name) {
  std::string accepted;
  for (const Entry& entry : kTypes) {
    if (name == entry.name) return entry.dtype;
    absl::StrAppend(&accepted, accepted.empty() ? "" : ", ", entry.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown dtype '", absl::string_view(name.data(), name.size()), "'; accepted: ", accepted));
}

bool IsFloatingPoint(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

}  // namespace muster
