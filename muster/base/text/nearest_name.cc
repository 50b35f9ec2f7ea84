#include "muster/base/text/nearest_name.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace muster {

size_t EditDistance(absl::string_view a, absl::string_view b) {
  // Rows of the table of distances between the prefixes of a and of b: two rows above, one row above, and the new row.
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> above(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string NearestName(absl::string_view written, const std::vector<std::string>& names) {
  // A text longer than any name by more than a third has no near name: its distance need not be computed.
  constexpr size_t kLongest = 100;
  if (written.size() > kLongest) return "";
  const std::string small = absl::AsciiStrToLower(written);
  size_t least = std::max<size_t>(1, written.size() / 3) + 1;
  std::string nearest;
  for (const std::string& name : names) {
    const size_t distance = EditDistance(small, absl::AsciiStrToLower(name));
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

std::string NearestHint(absl::string_view written, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(written, names);
  return nearest.empty() ? "" : absl::StrCat(" (nearest: ", nearest, ")");
}

}  // namespace muster
