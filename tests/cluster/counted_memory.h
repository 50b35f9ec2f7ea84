// Counts what a test's process allocates: replaces malloc and the like by functions that count and call glibc's;
// operator new uses them. Counts nothing under a sanitizer, which has its own allocator.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

// False if a sanitizer has replaced the allocator.
bool CountsMemory();

// Calls of malloc, calloc, realloc and aligned_alloc by all threads since the process began.
uint64_t Allocations();

// From now on notes the first few allocations and their callers. By one thread at a time.
void NoteAllocations();
// Ends that and returns what was noted: one line each, for `addr2line -Cfie PROGRAM` to explain.
std::string NotedAllocations();

}  // namespace muster
