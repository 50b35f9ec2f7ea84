// The one place where a process of muster waits. Channels, listeners, the store, the client and the session are state
// machines that run as handlers of a loop; they have no threads, no clock and no blocking of their own. Who has to wait
// calls RunUntil, which runs handlers meanwhile: on the real machine it sleeps in epoll, in a simulated world it moves
// the simulated clock (or lets another simulated process run).
//
// A loop is driven by one thread at a time, and everything that lives on it is used from that thread only; Post alone
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

  // Runs `handler` later on the loop. Handlers posted by one thread run in that order. Thread-safe.
  virtual void Post(Handler handler) = 0;

  // Runs `handler` at `when` or soon after it, unless cancelled first.
  virtual TimerId CallAt(absl::Time when, Handler handler) = 0;
  // A timer that has run or was cancelled is fine.
  virtual void CancelTimer(TimerId timer) = 0;

  // Runs handlers on the calling thread until `done` (looked at after each handler, and first of all) or `deadline`.
  // Returns what `done` said last. May be nested: a handler may wait, though it had better not.
  virtual bool RunUntil(absl::FunctionRef<bool()> done, absl::Time deadline) = 0;
};

}  // namespace muster
