// How long a channel waits before it tries to connect again. The delay is bounded, grows and is jittered, so that a
// thousand workers don't reconnect to a restarted ps in the same millisecond. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace muster {

struct BackoffOptions {
  absl::Duration min = absl::Milliseconds(50);
  absl::Duration max = absl::Seconds(5);
};

class Backoff {
 public:
  Backoff(const BackoffOptions& options, uint64_t seed)
      : options_(options), random_(static_cast<std::minstd_rand::result_type>(seed)), next_(options.min) {}

  // Returns between half and all of a duration that doubles from `min` to `max`.
  absl::Duration Next() {
    const absl::Duration whole = next_;
    next_ = std::min(2 * next_, options_.max);
    return whole * std::uniform_real_distribution<double>(0.5, 1.0)(random_);
  }

  void Reset() { next_ = options_.min; }

 private:
  const BackoffOptions options_;
  std::minstd_rand random_;
  absl::Duration next_;
};

}  // namespace muster
