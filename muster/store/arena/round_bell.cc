#include "muster/store/arena/round_bell.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>

namespace muster {
namespace {

// Other contributors are rarely later than this, and it costs less than two wake-ups of an idle virtual processor.
constexpr auto kGiveWayFor = std::chrono::microseconds(100);

}  // namespace

uint32_t RoundBell::rings() const { return std::atomic_ref(control_.bell).load(); }

void RoundBell::Ring() {
  std::atomic_ref(control_.bell).fetch_add(1);
  if (std::atomic_ref(control_.sleeping).exchange(0) == 0) return;
  syscall(SYS_futex, &control_.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool RoundBell::Wait(uint32_t rings, absl::Duration limit) {
  if (limit <= absl::ZeroDuration()) return this->rings() != rings;
  const auto until = std::chrono::steady_clock::now() + kGiveWayFor;
  do {
    if (this->rings() != rings) return true;
    sched_yield();
  } while (std::chrono::steady_clock::now() < until);
  // A later ring wakes this; an earlier one is noticed because the kernel compares the count.
  std::atomic_ref(control_.sleeping).store(1);
  const timespec timeout = absl::ToTimespec(limit);
  syscall(SYS_futex, &control_.bell, FUTEX_WAIT, rings, &timeout, nullptr, 0);
  return this->rings() != rings;
}

}  // namespace muster
