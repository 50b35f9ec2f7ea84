// Removes folders that may contain anything: programs' output, links that lead elsewhere, read-only folders. Stateless,
// thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace muster {

// Removes `path` with everything below it. Removes links, but doesn't follow them. A missing path is fine. An error
// names what can't be removed.
[[nodiscard]] absl::Status RemoveFolder(const std::string& path);

// Returns the bytes of contents that removing it would free: files with other hard links elsewhere don't count, nor
// does what can't be read.
int64_t BytesOfFolder(const std::string& path);

}  // namespace muster
