#include "tests/cluster/counted_copies.h"

#include <dlfcn.h>

#include <atomic>

#include "tests/cluster/counted_memory.h"

namespace muster {
namespace {

using Copy = void*(void*, const void*, size_t);

std::atomic<uint64_t> copied{0};
std::atomic<Copy*> library_memmove{nullptr};

// The C library's memmove, which also serves as memcpy. Until it is found, copies byte by byte, because the loader
// copies, too.
[[maybe_unused]] void* CountedCopy(void* to, const void* from, size_t bytes) {
  if (bytes >= kLeastCopy) copied.fetch_add(bytes, std::memory_order_relaxed);
  if (Copy* const copy = library_memmove.load(std::memory_order_relaxed)) return copy(to, from, bytes);
  // volatile, or the compiler would turn this into a call of memmove.
  auto* const target = static_cast<volatile char*>(to);
  const auto* const source = static_cast<const volatile char*>(from);
  if (target <= source) {
    for (size_t i = 0; i < bytes; ++i) target[i] = source[i];
  } else {
    for (size_t i = bytes; i > 0; --i) target[i - 1] = source[i - 1];
  }
  return to;
}

}  // namespace

bool CountsCopies() { return CountsMemory(); }

uint64_t CopiedBytes() {
  if (library_memmove == nullptr) library_memmove = reinterpret_cast<Copy*>(dlsym(RTLD_NEXT, "memmove"));
  return copied;
}

}  // namespace muster

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MUSTER_COUNTS_COPIES 1
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#undef MUSTER_COUNTS_COPIES
#endif
#endif
#endif

#ifdef MUSTER_COUNTS_COPIES
extern "C" {
void* memcpy(void* to, const void* from, size_t bytes) { return muster::CountedCopy(to, from, bytes); }
void* memmove(void* to, const void* from, size_t bytes) { return muster::CountedCopy(to, from, bytes); }
}
#endif
