// Counts what a test's process copies: replaces memcpy and memmove by functions that count long copies of all threads
// and call the C library's. Counts nothing under a sanitizer, which has its own functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster {

// False if a sanitizer has replaced the functions.
bool CountsCopies();

// Shorter copies are of headers and control messages, not of tensors.
inline constexpr size_t kLeastCopy = 1024;

// Returns the bytes in copies of at least kLeastCopy since the process began.
uint64_t CopiedBytes();

}  // namespace muster
