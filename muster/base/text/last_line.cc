#include "muster/base/text/last_line.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "muster/base/text/one_line.h"

namespace muster {

std::string LastLineOf(std::string_view text) {
  const std::vector<std::string> lines =
      absl::StrSplit(absl::string_view(text.data(), text.size()), absl::ByAnyChar("\r\n"), absl::SkipWhitespace());
  return lines.empty() ? "" : OneLine(std::string(absl::StripAsciiWhitespace(lines.back())));
}

}  // namespace muster
