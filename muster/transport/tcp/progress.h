// Checks whether something that has begun makes progress: less than 1 KiB within a time limit is a stall. Internal to
// tcp/.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace muster {

class Progress {
 public:
  // `bytes` is a count that grows with progress.
  void Begin(absl::Time now, uint64_t bytes) {
    active_ = true;
    since_ = now;
    bytes_then_ = bytes;
  }
  void End() { active_ = false; }
  bool active() const { return active_; }
  absl::Time since() const { return since_; }

  bool Stalled(absl::Time now, uint64_t bytes, absl::Duration limit) {
    constexpr uint64_t kLeast = 1024;
    if (!active_ || now - since_ < limit) return false;
    if (bytes - bytes_then_ < kLeast) return true;
    Begin(now, bytes);
    return false;
  }

 private:
  bool active_ = false;
  absl::Time since_;
  uint64_t bytes_then_ = 0;
};

}  // namespace muster
