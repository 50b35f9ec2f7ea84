// Logs for which other workers this one waits, at a gate or a barrier: after 10 s, and again as WaitNotices. Used by
// one thread.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "muster/base/wait_notices.h"

namespace muster {

class PsCalls;

class GateWaitNotice {
 public:
  // Begins at `now`. `task`: the waiting task. `ps_calls` must outlive it.
  GateWaitNotice(PsCalls& ps_calls, const std::string& task, absl::Time now);
  ~GateWaitNotice();
  GateWaitNotice(const GateWaitNotice&) = delete;
  GateWaitNotice& operator=(const GateWaitNotice&) = delete;

  // Call it every few seconds at least while the wait lasts. Asks ps 0 when a line is due.
  void Check(absl::Time now);

 private:
  PsCalls& ps_calls_;
  const std::string& task_;
  WaitNotices notices_;
  bool said_ = false;
};

}  // namespace muster
