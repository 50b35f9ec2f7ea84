// Waits for whatever happens first among file descriptors and a deadline: the one place where the launcher blocks.
// Pipes, signals (signalfd) and ends of processes (pidfd) are all descriptors, so nothing has to be checked now
// and then. Not thread-safe.
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

  // Calls `ready` with what poll found, each time one of `events` (POLLIN, POLLOUT), an end or an error is present. The
  // caller keeps the descriptor and must call Forget before closing it.
  void Watch(int fd, short events, std::function<void(short found)> ready);
  // With 0, the descriptor is ignored until the next call, even its end.
  void SetEvents(int fd, short events);
  void Forget(int fd);

  // Blocks until a descriptor is ready or `deadline` is reached, then calls back. Callbacks may call Watch and Forget.
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
