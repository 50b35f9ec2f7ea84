// Counts what a test's process allocates: malloc and its kin are replaced by ones that count and pass on to glibc's,
// and operator new goes through them. Under a sanitizer, which has an allocator of its own, nothing is counted.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

// False: a sanitizer has the allocator.
bool CountsMemory();

// Calls of malloc, calloc, realloc and aligned_alloc by all threads since the process began.
uint64_t Allocations();

// From now on the first few allocations are noted, with who made them. By one thread at a time.
void NoteAllocations();
// Ends that. What was noted, for a human: one line each, for `addr2line -Cfie PROGRAM` to explain.
std::string NotedAllocations();

}  // namespace muster
