#include "muster/store/arena/robust_lock.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>

#include "absl/time/clock.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/os/process_identity.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define MUSTER_TSAN 1
#endif
#endif

namespace muster {
namespace {

// A stripe is held for microseconds, and waking up takes longer.
constexpr int kLooksBeforeSleep = 100;

// The thread sanitizer knows dead owners only from pthread_mutex_lock and _trylock.
void TellSanitizerOfLock([[maybe_unused]] pthread_mutex_t* mutex) {
#ifdef MUSTER_TSAN
  __tsan_mutex_pre_lock(mutex, 0);
  __tsan_mutex_post_lock(mutex, 0, 0);
#endif
}

// Returns the process of a thread that is stopped; 0 if it isn't stopped.
pid_t StoppedProcessOf(pid_t thread) {
  std::ifstream file("/proc/" + std::to_string(thread) + "/status");
  std::string line;
  bool stopped = false;
  pid_t process = 0;
  while (std::getline(file, line)) {
    // Stopped by a signal, or by a debugger.
    if (line.starts_with("State:"))
      stopped = line.find_first_of("Tt", line.find(':')) == line.find_first_not_of(" \t", line.find(':') + 1);
    if (line.starts_with("Tgid:")) process = static_cast<pid_t>(std::stol(line.substr(5)));
  }
  return stopped ? process : 0;
}

// Reads the kernel's own record of the holder, in the mutex's futex word.
pid_t HolderOf(pthread_mutex_t* mutex) {
  return static_cast<pid_t>(std::atomic_ref(mutex->__data.__lock).load() & FUTEX_TID_MASK);
}

int WaitForHolder(pthread_mutex_t* mutex, absl::Duration patience) {
  constexpr int kLooks = 10;
  pid_t seen = 0;
  for (int looks = 0;;) {
    const timespec until = absl::ToTimespec(absl::Now() + patience / kLooks);
    const int error = pthread_mutex_timedlock(mutex, &until);
    if (error == EOWNERDEAD) TellSanitizerOfLock(mutex);
    if (error != ETIMEDOUT) return error;
    const pid_t holder = StoppedProcessOf(HolderOf(mutex));
    looks = holder == 0 ? 0 : holder == seen ? looks + 1 : 1;
    seen = holder;
    if (looks < kLooks) continue;
    if (const auto process = IdentifyProcess(holder)) {
      LogWarning("killing process ", holder, ", which is stopped and keeps a lock of the ps's memory");
      EndProcess(*process);
    }
    looks = 0;
  }
}

}  // namespace

int LockRobust(pthread_mutex_t* mutex, absl::Duration patience) {
  int error = pthread_mutex_trylock(mutex);
  for (int looks = 0; error == EBUSY && looks < kLooksBeforeSleep; ++looks) {
    sched_yield();
    error = pthread_mutex_trylock(mutex);
  }
  if (error == EBUSY) error = WaitForHolder(mutex, patience);
  MUSTER_CHECK(error == 0 || error == EOWNERDEAD);
  return error;
}

}  // namespace muster
