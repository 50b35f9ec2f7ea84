// std::string_view as Abseil's: two types, where the installed Abseil was built for an older C++ than ours.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace muster {

inline absl::string_view AbslView(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace muster
