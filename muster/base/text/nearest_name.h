// Which of the names that there are was meant by one that there isn't: for messages about typing mistakes. Pure;
// thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// How many letters must be left out, put in, changed, or exchanged with their neighbour to get from one to the other.
// (Optimal string alignment: no letter is touched twice.)
size_t EditDistance(absl::string_view a, absl::string_view b);

// The first of the nearest ones, capitals and small letters being the same; "" if a third of what was written would
// have to change, and more than one letter: then it isn't a typing mistake.
std::string NearestName(absl::string_view written, const std::vector<std::string>& names);

// For the message: " (nearest: NAME)", or "".
std::string NearestHint(absl::string_view written, const std::vector<std::string>& names);

}  // namespace muster
