// The only place where a process of muster waits. Channels, listeners, the store, the client and the session are state
// machines that run as handlers of a loop; they have no threads, no clock and no blocking of their own. Code that must
// wait calls RunUntil, which runs handlers meanwhile: on the real machine it sleeps in epoll, in a simulated world it
// moves the simulated clock (or lets another simulated process run).
//
// One thread at a time drives a loop, and everything that lives on the loop is used from that thread only. Only Post
// may be called from any thread.
#pragma once

#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace muster {

class EventLoop {
 public:
  using Handler = absl::AnyInvocable<void()>;
  enum class TimerId : uint64_t {};

  virtual ~EventLoop() = default;

  virtual absl::Time Now() const = 0;

  // Runs `handler` later on the loop. Handlers posted by one thread run in that order. Thread-safe
  // (in a simulated world: for the thread whose turn it is).
  virtual void Post(Handler handler) = 0;

  // Runs `handler` at `when` or soon after it, unless cancelled first.
  virtual TimerId CallAt(absl::Time when, Handler handler) = 0;
  // Ignores a timer that has run or was cancelled.
  virtual void CancelTimer(TimerId timer) = 0;

  // Runs handlers on the calling thread until `done` (checked first, and after each handler) or `deadline`. Returns the
  // last result of `done`. May be nested: a handler may wait, though it should not.
  virtual bool RunUntil(absl::FunctionRef<bool()> done, absl::Time deadline) = 0;
};

}  // namespace muster
