// Quotes text from outside for a one-line message: in double quotes, with control characters and quotes escaped, cut
// after 200 bytes. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace muster {

std::string Quoted(std::string_view text);

}  // namespace muster
