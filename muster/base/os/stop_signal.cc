#include "muster/base/os/stop_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "muster/base/check.h"
#include "muster/base/mutex.h"

namespace muster {
namespace {

// Globals, because a signal handler reaches nothing else and belongs to the process: the one place that can't avoid
// them. The limit is the number of listeners, that is, of nodes in one process.
std::atomic<int64_t> g_raised_at{0};  // in nanoseconds of CLOCK_MONOTONIC; 0: not yet
constexpr int64_t kEcho = 1'000'000'000;
// Event descriptors plus one; 0 marks a free place.
std::array<std::atomic<int>, 256> g_wakes;

// Async-signal-safe.
int64_t NowInNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void OnSignal(int number) {
  const int saved = errno;
  const int64_t now = NowInNanoseconds();
  if (int64_t first = 0; !g_raised_at.compare_exchange_strong(first, now)) {
    if (number != SIGTERM || now - first > kEcho) {
      std::signal(number, SIG_DFL);
      std::raise(number);  // ends the process when this handler returns
    }
    errno = saved;
    return;
  }
  const uint64_t one = 1;
  for (const auto& wake : g_wakes)
    if (const int place = wake.load(); place > 0) (void)!write(place - 1, &one, sizeof one);
  errno = saved;
}

// Installs the handlers for the first listener and restores the old ones after the last.
struct Installation {
  Mutex mutex;
  int listeners ABSL_GUARDED_BY(mutex) = 0;
  struct sigaction former_interrupt ABSL_GUARDED_BY(mutex);
  struct sigaction former_terminate ABSL_GUARDED_BY(mutex);

  void Enter() {
    MutexLock lock(mutex);
    if (listeners++ > 0) return;
    g_raised_at.store(0);
    struct sigaction action = {};
    action.sa_handler = OnSignal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &former_interrupt);
    sigaction(SIGTERM, &action, &former_terminate);
  }
  void Leave() {
    MutexLock lock(mutex);
    if (--listeners > 0) return;
    sigaction(SIGINT, &former_interrupt, nullptr);
    sigaction(SIGTERM, &former_terminate, nullptr);
  }
};

Installation& TheInstallation() {
  static Installation installation;
  return installation;
}

size_t TakePlace(int fd) {
  for (size_t i = 0; i < g_wakes.size(); ++i) {
    int free = 0;
    if (g_wakes[i].compare_exchange_strong(free, fd + 1)) return i;
  }
  MUSTER_CHECK(false && "more stop signals at once than anyone needs");
  return 0;
}

}  // namespace

StopSignal::StopSignal(std::function<void()> on_raise) : wake_(eventfd(0, EFD_CLOEXEC)) {
  MUSTER_CHECK(wake_ >= 0);
  TheInstallation().Enter();
  place_ = TakePlace(wake_);
  watcher_ = std::thread([this, fd = wake_, on_raise = std::move(on_raise)] {
    uint64_t count;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR) {
    }
    if (g_raised_at.load() != 0 && !closing_.load()) on_raise();
  });
  // The signal may have come before this listener was registered.
  if (raised()) Wake();
}

StopSignal::~StopSignal() {
  g_wakes[place_].store(0);
  closing_.store(true);
  Wake();
  watcher_.join();
  close(wake_);
  TheInstallation().Leave();
}

void StopSignal::Wake() {
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
}

bool StopSignal::raised() const { return g_raised_at.load(std::memory_order_relaxed) != 0; }

}  // namespace muster
