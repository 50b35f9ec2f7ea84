// --color of the commands that show what programs write.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace muster {

// `color` is auto, always or never (InvalidArgument otherwise). With auto a terminal at `fd` gets colours unless
// NO_COLOR (no-color.org) or TERM say otherwise.
absl::StatusOr<bool> WantsColor(const std::string& color, int fd);

}  // namespace muster
