#include "muster/collective/shm/shm_wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster {
namespace {

// Longer than ranks that do the same work are apart in an operation, and about the cost to both sides of sleeping and
// waking.
constexpr auto kShort = std::chrono::microseconds(100);
// How often to check the word between two readings of the clock.
constexpr int kLooks = 32;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

ShortWait ShortWaitFor(int ranks, int processors) { return processors >= ranks ? ShortWait::kSpin : ShortWait::kYield; }

bool HasCounted(ShmCounter& counter, uint32_t chunks) {
  return static_cast<int32_t>(std::atomic_ref(counter.chunks).load(std::memory_order_acquire) - chunks) >= 0;
}

void CountTo(ShmCounter& counter, uint32_t chunks) {
  std::atomic_ref(counter.chunks).store(chunks);
  // A rank that announces its sleep after this check sees the new count when the kernel itself checks the word.
  if (std::atomic_ref(counter.sleeping).load() != 0) WakeAll(counter);
}

void WakeAll(ShmCounter& counter) {
  std::atomic_ref(counter.sleeping).store(0);
  syscall(SYS_futex, &counter.chunks, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool AwaitBriefly(ShmCounter& counter, uint32_t chunks, ShortWait how) {
  if (HasCounted(counter, chunks)) return true;
  const auto until = std::chrono::steady_clock::now() + kShort;
  do {
    if (how == ShortWait::kYield) {
      sched_yield();
      if (HasCounted(counter, chunks)) return true;
      continue;
    }
    for (int i = 0; i < kLooks; ++i) {
      if (HasCounted(counter, chunks)) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < until);
  return HasCounted(counter, chunks);
}

bool AwaitAsleep(ShmCounter& counter, uint32_t chunks, absl::Duration limit) {
  std::atomic_ref(counter.sleeping).store(1);
  const uint32_t seen = std::atomic_ref(counter.chunks).load();
  if (static_cast<int32_t>(seen - chunks) >= 0) return true;
  const timespec timeout = absl::ToTimespec(limit);
  syscall(SYS_futex, &counter.chunks, FUTEX_WAIT, seen, &timeout, nullptr, 0);
  return HasCounted(counter, chunks);
}

}  // namespace muster
