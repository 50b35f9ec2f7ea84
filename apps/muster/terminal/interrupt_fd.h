// Ctrl-C and SIGTERM as a descriptor for poll(2): readable from the first signal on. The second ends the process as by
// default. Used by one thread.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "muster/base/os/stop_signal.h"

namespace muster {

class InterruptFd {
 public:
  // Starts a thread.
  InterruptFd()
      : signal_([this] {
          const uint64_t one = 1;
          (void)!write(event_.fd, &one, sizeof one);
        }) {}

  int fd() const { return event_.fd; }

 private:
  struct Event {
    ~Event() { close(fd); }
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  };

  const Event event_;  // outlives the thread that writes to it
  const StopSignal signal_;
};

}  // namespace muster
