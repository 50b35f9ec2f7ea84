#include "apps/muster/color_flag.h"

#include <unistd.h>

#include <string_view>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// "" if it isn't set.
std::string_view OwnVariable(std::string_view name) {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.size() > name.size() && text[name.size()] == '=' && text.substr(0, name.size()) == name)
      return text.substr(name.size() + 1);
  }
  return "";
}

}  // namespace

absl::StatusOr<bool> WantsColor(const std::string& color, int fd) {
  if (color == "always") return true;
  if (color == "never") return false;
  if (color == "auto") return isatty(fd) == 1 && OwnVariable("NO_COLOR").empty() && OwnVariable("TERM") != "dumb";
  return absl::InvalidArgumentError(absl::StrCat("--color '", color, "': accepted are auto, always, never"));
}

}  // namespace muster
