// Removes what may hold anything: what programs made, links that lead elsewhere, folders nobody may write to.
// Stateless, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace muster {

// With all below; links are removed, not followed. None is fine. An error names what can't be removed.
[[nodiscard]] absl::Status RemoveFolder(const std::string& path);

// What removing it frees, in bytes of contents: files that have other names elsewhere don't count. What can't be read
// counts nothing.
int64_t BytesOfFolder(const std::string& path);

}  // namespace muster
