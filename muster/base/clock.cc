#include "muster/base/clock.h"

#include <time.h>

#include <chrono>

#include "absl/time/clock.h"

namespace muster {
namespace {

class SystemClock final : public Clock {
 public:
  absl::Time Now() const override {
    return start_ + absl::FromChrono(std::chrono::steady_clock::now() - steady_start_);
  }

 private:
  const absl::Time start_ = absl::Now();
  const std::chrono::steady_clock::time_point steady_start_ = std::chrono::steady_clock::now();
};

class SinceBootClock final : public Clock {
 public:
  absl::Time Now() const override { return start_ + (SinceBoot() - since_boot_start_); }

 private:
  static absl::Duration SinceBoot() {
    timespec since = {};
    clock_gettime(CLOCK_BOOTTIME, &since);
    return absl::DurationFromTimespec(since);
  }

  const absl::Time start_ = absl::Now();
  const absl::Duration since_boot_start_ = SinceBoot();
};

}  // namespace

const Clock& RealClock() {
  static const SystemClock clock;
  return clock;
}

const Clock& BootClock() {
  static const SinceBootClock clock;
  return clock;
}

}  // namespace muster
