// Whether bytes are text, before they go where only text can be kept: JSON, YAML. Pure, thread-safe.
#pragma once

#include <string_view>

namespace muster {

// Returns whether all of it is UTF-8 as RFC 3629 has it: no surrogates, no longer forms than needed.
bool IsUtf8(std::string_view text);

}  // namespace muster
