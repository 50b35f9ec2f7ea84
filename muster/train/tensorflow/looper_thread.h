// A thread that calls a function again and again until its coordinator stops (TensorFlow's LooperThread,
// python/training/coordinator.py). An error or an exception of the function stops all threads of the coordinator.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/wait_clock.h"
#include "muster/train/threads/coordinated_thread.h"
#include "muster/train/threads/coordinator.h"

namespace muster {

struct LooperThreadOptions {
  std::string name = "looper";
  // From the start of one call to the start of the next. If a call takes longer, the next follows at once. 0: one after
  // the other.
  absl::Duration interval;
  // Called in the thread: before the first call, and after the last if nothing failed.
  std::function<absl::Status()> start_loop = [] { return absl::OkStatus(); };
  std::function<absl::Status()> stop_loop = [] { return absl::OkStatus(); };
  const WaitClock* clock = &RealWaitClock();  // the coordinator's; must outlive the thread
};

class LooperThread {
 public:
  // Starts at once, and makes the first call without a wait. The destructor blocks until the coordinator has stopped
  // and the last call has returned.
  LooperThread(Coordinator& coordinator, LooperThreadOptions options, std::function<absl::Status()> run_loop);

 private:
  CoordinatedThread thread_;
};

}  // namespace muster
