#include "muster/base/clock.h"

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

}  // namespace

const Clock& RealClock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace muster
