// Waits for file descriptors (epoll), and for what others write into shared memory. It replaces Asio, which needs a
// system call for every wait and, once it has waited to write on a socket, is woken by every acknowledgement on that
// socket: measured, a push of 64 KB took three times as long as over a plain socket. Level-triggered: an event that
// isn't handled comes again.
//
// Short waits poll (see BusyWait). Polling looks at shared memory without a system call.
//
// Not thread-safe, except Wake. Internal to tcp/.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "muster/transport/io/busy_wait.h"
#include "muster/transport/io/socket.h"

namespace muster {

class Poller {
 public:
  // Receives a file descriptor's events. Must be removed before it is destroyed.
  class Watched {
   public:
    virtual ~Watched() = default;
    // `broken`: both directions are closed, or an error is pending. Reported whatever the interest is.
    virtual void OnReady(bool readable, bool writable, bool broken) = 0;
  };
  // Memory that others write to. Must be removed before it is destroyed.
  class Memory {
   public:
    virtual ~Memory() = default;
    // True if there is something to do. Costs two loads.
    virtual bool Ready() const = 0;
    virtual void OnReady() = 0;
    // True: the poller is about to sleep and checks Ready once more after this; from now on one of the file descriptors
    // must become ready when this memory does. False: the poller is awake again.
    virtual void SetAsleep(bool asleep) = 0;
  };
  enum class Id : uint64_t {};
  struct Interest {
    bool read = false;
    bool write = false;
  };

  Poller();

  // `fd` must stay open until Remove.
  Id Add(int fd, Interest interest, Watched* watched);
  void Change(Id id, Interest interest);
  void Remove(Id id);

  void AddMemory(Memory* memory) { memories_.push_back(memory); }
  void RemoveMemory(Memory* memory);

  // Waits until something is ready, until Wake, or for at most `time`; may return early. Forgets the events that
  // RunNext hasn't delivered; they come again.
  void Wait(absl::Duration time);
  // Calls OnReady of the next watched object that is ready; false if there is none.
  bool RunNext();

  // Ends the current Wait, or the next one. Thread-safe.
  void Wake();

 private:
  struct Slot {
    int fd = -1;
    uint32_t generation = 0;
    Watched* watched = nullptr;
  };

  Slot* Find(uint64_t id);
  int Poll(int milliseconds);
  bool AnyMemoryReady() const;
  bool PollMemoryAlone();
  bool StayAwake();
  void Sleep();
  void SetTimer(int64_t wake);
  static epoll_event EventFor(uint64_t id, Interest interest);

  const Socket epoll_;
  const Socket wake_;   // an eventfd
  const Socket timer_;  // a timerfd: cheaper than a time limit for every wait, as it is mostly set already
  int64_t timer_set_;   // steady time in nanoseconds when it goes off; kNotSet if it isn't set
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::array<epoll_event, 64> events_;
  size_t next_event_ = 0;
  size_t event_count_ = 0;
  std::vector<Memory*> memories_;
  size_t next_memory_ = 0;
  int memory_alone_ = 0;  // waits in a row that checked only memory
  BusyWait busy_wait_;
};

}  // namespace muster
