// How long to wait before what has failed is tried again: twice as long after each failure, up to a limit. Not
// thread-safe.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace muster {

class RetryPause {
 public:
  RetryPause(absl::Duration first, absl::Duration most) : first_(first), most_(most), next_(first) {}

  // Returns the pause after a further failure.
  absl::Duration Next() {
    const absl::Duration pause = std::min(next_, most_);
    next_ = 2 * pause;
    return pause;
  }
  // Forgets the failures.
  void Reset() { next_ = first_; }

 private:
  const absl::Duration first_;
  const absl::Duration most_;
  absl::Duration next_;
};

}  // namespace muster
