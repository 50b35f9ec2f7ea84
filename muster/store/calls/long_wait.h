// A wait for other workers, at a gate or a barrier: it logs which ones after half a minute, and again every half
// minute. Used by one thread.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace muster {

class PsCalls;

class LongWait {
 public:
  // Begins at `now`. `task`: the waiting task. `ps_calls` must outlive it.
  LongWait(PsCalls& ps_calls, const std::string& task, absl::Time now);
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

  // Call it every few seconds at least while the wait lasts. Asks ps 0 once in half a minute.
  void Look(absl::Time now);

 private:
  PsCalls& ps_calls_;
  const std::string& task_;
  const absl::Time began_;
  absl::Time next_;
  bool said_ = false;
};

}  // namespace muster
