// Reaps processes that lost their parent and became this process's children (it is a subreaper) as soon as they end;
// otherwise a task that leaves many behind would fill the machine's process table with zombies. Woken by SIGCHLD, which
// is blocked while this object lives; used by the process's only thread.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

class Orphans {
 public:
  // Leaves children alone that other code waits for (IsAwaitedChild). Borrows the loop, which must outlive it.
  static absl::StatusOr<std::unique_ptr<Orphans>> Watch(FdLoop& loop);
  // The last one restores the previous handling of SIGCHLD.
  ~Orphans();
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;

  // Must also be called when a child of one's own has been waited for: an ended child that hasn't been waited for hides
  // those that ended after it.
  void Reap() const;

 private:
  Orphans(FdLoop& loop, int fd);
  void OnSignal() const;

  FdLoop& loop_;
  const int fd_;  // signalfd
};

}  // namespace muster
