#include "muster/launch/project/decimal_size.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster {

std::string DecimalSize(int64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, bytes == 1 ? " byte" : " bytes");
  constexpr const char* kUnits[] = {"KB", "MB", "GB"};
  double size = static_cast<double>(bytes);
  for (const char* unit : kUnits) {
    size /= 1000;
    // What would print as 1000.0 becomes 1.0 of the next unit.
    if (size < 999.95) return absl::StrFormat("%.1f %s", size, unit);
  }
  return absl::StrFormat("%.1f TB", size / 1000);
}

}  // namespace muster
