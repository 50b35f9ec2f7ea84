// Converts std::string_view to Abseil's string_view. They are two types if the installed Abseil was built for an older
// C++ than ours.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace muster {

inline absl::string_view AbslView(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace muster
