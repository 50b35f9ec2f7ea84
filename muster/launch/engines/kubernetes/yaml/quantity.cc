#include "muster/launch/engines/kubernetes/yaml/quantity.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace muster {

std::string MemoryQuantity(int64_t bytes) {
  if (bytes % (int64_t{1} << 30) == 0) return absl::StrCat(bytes >> 30, "Gi");
  if (bytes % (int64_t{1} << 20) == 0) return absl::StrCat(bytes >> 20, "Mi");
  return absl::StrCat(bytes);
}

std::string CpuQuantity(double cpus) {
  const auto thousandths = static_cast<int64_t>(std::ceil(cpus * 1000 - 1e-6));
  return thousandths % 1000 == 0 ? absl::StrCat(thousandths / 1000) : absl::StrCat(thousandths, "m");
}

}  // namespace muster
