// Waits for whatever happens first among file descriptors and a deadline: the one place where the launcher blocks.
// Pipes, signals (signalfd) and ends of processes (pidfd) are all descriptors, so nothing is ever looked at again and
// again. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "absl/time/time.h"
#include "muster/base/clock.h"

namespace muster {

class FdLoop {
 public:
  explicit FdLoop(const Clock& clock) : clock_(clock) {}

  // Calls `ready` with what poll found, for as long as one of `events` (POLLIN, POLLOUT) or an end or error is there.
  // The descriptor stays the caller's and is forgotten before it is closed.
  void Watch(int fd, short events, std::function<void(short found)> ready);
  // 0: not looked at for now, not even for its end.
  void SetEvents(int fd, short events);
  void Forget(int fd);

  // Blocks until a descriptor is ready or `deadline` has come, then calls back. Callbacks may watch and forget.
  void RunOnce(absl::Time deadline);

 private:
  struct Entry {
    short events;
    uint64_t id;  // tells a descriptor from a later one with the same number
    std::function<void(short found)> ready;
  };

  const Clock& clock_;
  std::map<int, Entry> entries_;
  uint64_t next_id_ = 0;
};

}  // namespace muster
