// Unguessable names and secrets.
#pragma once

#include <cstddef>
#include <string>

namespace muster {

// `bytes` random bytes of the operating system, as lower-case hexadecimal digits. At most 256. Thread-safe.
std::string RandomHex(size_t bytes);

}  // namespace muster
