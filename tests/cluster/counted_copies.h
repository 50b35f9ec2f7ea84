// Counts what a test's process copies: memcpy and memmove are replaced by ones that count what is long, by all threads,
// and pass on to the C library's. Under a sanitizer, which has its own, nothing is counted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster {

// False: a sanitizer has the functions.
bool CountsCopies();

// Shorter copies aren't of tensors, but of headers and control messages.
inline constexpr size_t kLeastCopy = 1024;

// Bytes in copies of at least kLeastCopy since the process began.
uint64_t CopiedBytes();

}  // namespace muster
