// "Did you mean" suggestions: finds the known name that is nearest to a mistyped one, for messages. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// Returns how many letters must be removed, inserted, changed, or swapped with their neighbour to turn one text into
// the other. (Optimal string alignment: no letter is touched twice.)
size_t EditDistance(absl::string_view a, absl::string_view b);

// Returns the first of the nearest names, ignoring case. Returns "" if more than one letter and more than a third of
// `written` would have to change: then it isn't a typing mistake.
std::string NearestName(absl::string_view written, const std::vector<std::string>& names);

// Returns " (nearest: NAME)" for a message, or "".
std::string NearestHint(absl::string_view written, const std::vector<std::string>& names);

}  // namespace muster
