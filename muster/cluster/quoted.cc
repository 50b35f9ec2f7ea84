#include "muster/cluster/quoted.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster {

std::string Quoted(std::string_view text) {
  constexpr size_t kLongest = 200;
  bool cut = text.size() > kLongest;
  std::string escaped = absl::Utf8SafeCHexEscape(absl::string_view(text.data(), cut ? kLongest : text.size()));
  return absl::StrCat("\"", escaped, cut ? "…" : "", "\"");
}

}  // namespace muster
