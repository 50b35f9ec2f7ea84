// Times to wait, as settings of engines state them. Pure functions, thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace muster {

// Reads "90", in seconds, or a time with its unit, as "10m". nullopt: it isn't one from `least` to `most`.
std::optional<absl::Duration> ParseWait(const std::string& text, absl::Duration least, absl::Duration most);

}  // namespace muster
