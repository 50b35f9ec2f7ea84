// The last words of a program, for messages. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// Returns the last line that has words, without control characters; "" if there is none.
std::string LastLineOf(std::string_view text);

}  // namespace muster
