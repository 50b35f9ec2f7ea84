// The flag --color of commands that show programs' output.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace muster {

// `color` is auto, always or never (InvalidArgument otherwise). With auto, a terminal at `fd` gets colours unless
// NO_COLOR (no-color.org) or TERM prevents it.
absl::StatusOr<bool> WantsColor(const std::string& color, int fd);

}  // namespace muster
