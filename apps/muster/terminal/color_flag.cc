#include "apps/muster/terminal/color_flag.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "apps/muster/terminal/own_environment.h"

namespace muster {
absl::StatusOr<bool> WantsColor(const std::string& color, int fd) {
  if (color == "always") return true;
  if (color == "never") return false;
  if (color == "auto") return isatty(fd) == 1 && OwnVariable("NO_COLOR").empty() && OwnVariable("TERM") != "dumb";
  return absl::InvalidArgumentError(absl::StrCat("--color '", color, "': accepted are auto, always, never"));
}

}  // namespace muster
