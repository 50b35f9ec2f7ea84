// Unguessable names and secrets.
#pragma once

#include <cstddef>
#include <string>

namespace muster {

// Returns `bytes` (at most 256) random bytes of the operating system as lower-case hexadecimal digits. Thread-safe.
std::string RandomHex(size_t bytes);

}  // namespace muster
