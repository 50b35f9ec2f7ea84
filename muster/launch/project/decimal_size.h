// Sizes as people read them. For files, MB are powers of ten as for `ls` and disk makers (for memory they are powers of
// two: MemoryText). Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

// Returns "0 bytes", "1 byte", "999 bytes", "1.0 KB", "5.7 MB", "1.2 GB", "3.0 TB".
std::string DecimalSize(int64_t bytes);

}  // namespace muster
