// Waits for whatever happens first among file descriptors and a deadline: the one place where the launcher blocks.
// Pipes, signals (signalfd) and ends of processes (pidfd) are all descriptors, so nothing has to be checked now
// and then. A round costs what its ready descriptors cost, however many others there are: a run may have thousands.
// What the kernel's table (epoll) doesn't take, because it is full or is a file on disk, costs each round a little.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"

namespace muster {

class FdLoop {
 public:
  explicit FdLoop(const Clock& clock);
  ~FdLoop();
  FdLoop(const FdLoop&) = delete;
  FdLoop& operator=(const FdLoop&) = delete;

  // Calls `ready` with what was found, each time one of `events` (POLLIN, POLLOUT), an end or an error is present. The
  // caller keeps the descriptor and must call Forget before closing it. Files on disk are always ready.
  void Watch(int fd, short events, std::function<void(short found)> ready);
  // With 0, the descriptor is ignored until the next call, even its end.
  void SetEvents(int fd, short events);
  void Forget(int fd);

  // Blocks until a descriptor is ready or `deadline` is reached, then calls back. Callbacks may call Watch and Forget.
  void RunOnce(absl::Time deadline);
  // Returns how often that was called. What was ready in one round was so before any of its callbacks.
  uint64_t rounds() const { return rounds_; }

 private:
  struct Entry {
    short events;
    uint32_t id;  // tells a descriptor from a later one with the same number
    bool polled;  // the kernel's table doesn't have it
    std::function<void(short found)> ready;
  };

  void Register(int fd, Entry& entry);
  void Unregister(int fd, Entry& entry);
  // Blocks until something is ready, or for `timeout` milliseconds (-1: without end); appends the entries that are
  // polled and ready.
  struct Ready {
    int fd;
    uint32_t id;
    short found;
  };
  void AwaitPolled(int timeout, std::vector<Ready>& ready) const;
  void CallBack(int fd, uint32_t id, short found);

  const Clock& clock_;
  const int epoll_;  // -1: this process had no descriptor left for it, and all entries are polled
  std::map<int, Entry> entries_;
  uint32_t next_id_ = 0;
  int polled_ = 0;  // entries that are polled, and aren't ignored
  uint64_t rounds_ = 0;
};

}  // namespace muster
