#include "muster/store/arena/robust_lock.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <map>
#include <set>
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

constexpr int kLooks = 10;  // at a stopped process, before its time is over
constexpr absl::Duration kSayEvery = absl::Seconds(10);

// The stopped processes that hold mutexes of a memory, as one waiting process sees them.
class StoppedHolders {
 public:
  StoppedHolders(LockedMemory& memory, absl::Duration between_looks)
      : memory_(memory), looks_between_words_(std::max<int64_t>(1, kSayEvery / between_looks)) {}

  // Looks once at all holders. Kills those that were stopped at each of the last kLooks, as far as that may be.
  void Look() {
    std::set<pid_t> threads;
    memory_.ForEachMutex([&threads](pthread_mutex_t* mutex) { threads.insert(HolderOf(mutex)); });
    std::set<pid_t> stopped;
    for (const pid_t thread : threads)
      if (const pid_t process = thread == 0 ? 0 : StoppedProcessOf(thread); process != 0) stopped.insert(process);
    std::erase_if(looks_, [&stopped](const auto& one) { return !stopped.contains(one.first); });
    for (const pid_t process : stopped)
      if (++looks_[process] >= kLooks) OnOverdue(process, looks_[process]);
  }

 private:
  void OnOverdue(pid_t process, int64_t looks) {
    if (!memory_.MayKill(process)) {
      if ((looks - kLooks) % looks_between_words_ == 0)
        LogWarning("waiting for process ", process,
                   ", the ps, which is stopped and keeps a lock of its memory: it has ", "to go on (kill -CONT ",
                   process, "), or to be ended with the loss of its model");
      return;
    }
    const auto identity = IdentifyProcess(process);
    if (!identity) return;
    LogWarning("killing process ", process, ", which is stopped and keeps a lock of the ps's memory");
    EndProcess(*identity);
    looks_.erase(process);
  }

  LockedMemory& memory_;
  const int64_t looks_between_words_;
  std::map<pid_t, int64_t> looks_;  // at how many in a row a process was stopped
};

int WaitForHolder(pthread_mutex_t* mutex, LockedMemory& memory, absl::Duration patience) {
  StoppedHolders holders(memory, patience / kLooks);
  for (;;) {
    const timespec until = absl::ToTimespec(absl::Now() + patience / kLooks);
    const int error = pthread_mutex_timedlock(mutex, &until);
    if (error == EOWNERDEAD) TellSanitizerOfLock(mutex);
    if (error != ETIMEDOUT) return error;
    holders.Look();
  }
}

}  // namespace

int LockRobust(pthread_mutex_t* mutex, LockedMemory& memory, absl::Duration patience) {
  int error = pthread_mutex_trylock(mutex);
  for (int looks = 0; error == EBUSY && looks < kLooksBeforeSleep; ++looks) {
    sched_yield();
    error = pthread_mutex_trylock(mutex);
  }
  if (error == EBUSY) error = WaitForHolder(mutex, memory, patience);
  MUSTER_CHECK(error == 0 || error == EOWNERDEAD);
  return error;
}

}  // namespace muster
