// What the world wrote, as it may stand in a one-line message: in double quotes, control characters and quotes escaped,
// cut after 200 bytes. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace muster {

std::string Quoted(std::string_view text);

}  // namespace muster
