#include "muster/base/text/last_line.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/text/one_line.h"

namespace muster {

std::string LastLineOf(std::string_view text) {
  const std::vector<std::string> lines =
      absl::StrSplit(AbslView(text), absl::ByAnyChar("\r\n"), absl::SkipWhitespace());
  return lines.empty() ? "" : OneLine(std::string(absl::StripAsciiWhitespace(lines.back())));
}

}  // namespace muster
