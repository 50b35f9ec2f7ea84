#include "tests/cluster/counted_memory.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <atomic>
#include <cstdio>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MUSTER_COUNTS_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define MUSTER_COUNTS_MEMORY 0
#endif
#endif
#ifndef MUSTER_COUNTS_MEMORY
#define MUSTER_COUNTS_MEMORY 1
#endif

namespace muster {
namespace {

constexpr int kFrames = 14;
struct Noted {
  int frames = 0;
  std::array<void*, kFrames> where;
};

std::atomic<uint64_t> allocations{0};
std::atomic<bool> noting{false};
size_t noted_count = 0;
std::array<Noted, 64> noted;

[[maybe_unused]] void Count() {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (noted_count == noted.size() || !noting.exchange(false)) return;  // this function's own allocations aren't noted
  Noted& next = noted[noted_count++];
  next.frames = backtrace(next.where.data(), kFrames);
  noting = true;
}

}  // namespace

bool CountsMemory() { return MUSTER_COUNTS_MEMORY != 0; }

uint64_t Allocations() { return allocations; }

void NoteAllocations() {
  std::array<void*, 1> first;
  backtrace(first.data(), 1);  // the first call loads a library
  noted_count = 0;
  noting = true;
}

std::string NotedAllocations() {
  noting = false;
  std::string text;
  for (size_t i = 0; i < noted_count; ++i) {
    for (int frame = 2; frame < noted[i].frames; ++frame) {
      Dl_info found;
      void* at = noted[i].where[frame];
      const bool known = dladdr(at, &found) != 0;
      char word[64];
      std::snprintf(word, sizeof word, " 0x%zx",
                    reinterpret_cast<size_t>(at) - (known ? reinterpret_cast<size_t>(found.dli_fbase) : 0));
      text += word;
    }
    text += '\n';
  }
  return text;
}

}  // namespace muster

#if MUSTER_COUNTS_MEMORY
extern "C" {
// NOLINTBEGIN(readability-identifier-naming): the C library's names.
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
// NOLINTEND(readability-identifier-naming)

void* malloc(size_t bytes) {
  muster::Count();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  muster::Count();
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  muster::Count();
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  muster::Count();
  return __libc_memalign(alignment, bytes);
}
}
#endif
