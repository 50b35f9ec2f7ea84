// What a user's own job token must be like. Pure, thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace muster {

// A stranger that listens on a port of the job gets a proof of the token, to try guesses on for as long as it likes: a
// short token would be found. (The tokens that the launcher draws have 64 hexadecimal digits.)
inline constexpr size_t kLeastJobToken = 16;

// IsWrongConfiguration, with the way out: the token is shorter. An empty one is none, and fine.
[[nodiscard]] absl::Status CheckJobToken(const std::string& token);

}  // namespace muster
