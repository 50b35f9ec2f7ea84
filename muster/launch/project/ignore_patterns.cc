#include "muster/launch/project/ignore_patterns.h"

#include <fnmatch.h>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/absl_view.h"

namespace muster {
namespace {

// Removes trailing blanks, except those kept by a backslash before the first of them.
std::string_view WithoutIgnoredBlanks(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  while (!line.empty() && line.back() == ' ') {
    size_t backslashes = 0;
    while (backslashes + 1 < line.size() && line[line.size() - 2 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 1) break;
    line.remove_suffix(1);
  }
  return line;
}

bool IgnoreNameFits(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// Matches as a shell matches '*' in a name, with parts for letters and "**" for '*'. Goes back to the last "**" only,
// which is enough, so that no pattern takes long.
bool IgnorePathFits(const std::vector<std::string>& pattern, const std::vector<std::string>& path) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t p = 0;
  size_t n = 0;
  size_t star = kNone;
  size_t after_star = 0;  // where in the path to try what follows the "**"
  while (n < path.size()) {
    if (p < pattern.size() && pattern[p] == "**") {
      star = p++;
      // "a/**" matches what is in a, not a itself.
      after_star = p == pattern.size() ? path.size() : n;
      n = after_star;
    } else if (p < pattern.size() && IgnoreNameFits(pattern[p], path[n])) {
      ++p;
      ++n;
    } else if (star != kNone) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  return p == pattern.size();
}

}  // namespace

IgnorePatterns::IgnorePatterns(std::string_view text) {
  absl::string_view rest = AbslView(text);
  absl::ConsumePrefix(&rest, "\xEF\xBB\xBF");
  for (const absl::string_view read : absl::StrSplit(rest, '\n')) {
    absl::string_view line = AbslView(WithoutIgnoredBlanks({read.data(), read.size()}));
    if (absl::StartsWith(line, "#")) continue;
    Pattern pattern;
    pattern.negated = absl::ConsumePrefix(&line, "!");
    pattern.only_folders = absl::ConsumeSuffix(&line, "/");
    pattern.whole_path = absl::StrContains(line, '/');
    absl::ConsumePrefix(&line, "/");
    if (line.empty()) continue;
    pattern.parts = absl::StrSplit(line, '/');
    patterns_.push_back(std::move(pattern));
  }
}

bool IgnorePatterns::Ignores(std::string_view path, bool is_folder) const {
  const std::vector<std::string> parts = absl::StrSplit(AbslView(path), '/');
  for (auto pattern = patterns_.rbegin(); pattern != patterns_.rend(); ++pattern) {
    if (pattern->only_folders && !is_folder) continue;
    const bool fits =
        pattern->whole_path ? IgnorePathFits(pattern->parts, parts) : IgnoreNameFits(pattern->parts[0], parts.back());
    if (fits) return !pattern->negated;
  }
  return false;
}

}  // namespace muster
