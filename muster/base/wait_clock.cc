#include "muster/base/wait_clock.h"

#include <algorithm>

namespace muster {
namespace {

// Longer waits are split into pieces of this length: the sum of now and a far deadline would overflow.
constexpr absl::Duration kLongestWait = absl::Hours(1);

class MachineWaitClock final : public WaitClock {
 public:
  absl::Time Now() const override { return RealClock().Now(); }
  void WaitUntil(CondVar& changed, Mutex& mutex, absl::Time deadline) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const absl::Duration left = deadline - Now();
    if (left > absl::ZeroDuration()) changed.WaitFor(mutex, std::min(left, kLongestWait));
  }
};

}  // namespace

const WaitClock& RealWaitClock() {
  static const MachineWaitClock clock;
  return clock;
}

}  // namespace muster
