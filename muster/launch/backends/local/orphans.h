// Waits for processes that became this process's children when they lost their own parent (it is a subreaper), as soon
// as they end: otherwise a task that leaves many behind would fill the machine's table of processes with zombies. Woken
// by SIGCHLD, which is blocked for as long as this lives; used by the process's only thread.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

class Orphans {
 public:
  // `is_own`: somebody else waits for this child. Borrows the loop, which must outlive it.
  static absl::StatusOr<std::unique_ptr<Orphans>> Watch(FdLoop& loop, std::function<bool(pid_t pid)> is_own);
  // SIGCHLD is as it was before.
  ~Orphans();
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;

  // Also to be called when a child of one's own has been waited for: while one that has ended isn't, those that came
  // after it can't be seen.
  void Reap() const;

 private:
  Orphans(FdLoop& loop, int fd, std::function<bool(pid_t pid)> is_own);
  void OnSignal() const;

  FdLoop& loop_;
  const int fd_;  // signalfd
  const std::function<bool(pid_t pid)> is_own_;
  sigset_t mask_before_;
};

}  // namespace muster
