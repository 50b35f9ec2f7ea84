// The event loop of a real process: runs handlers, timers and sockets on the thread that calls RunUntil. It has no
// thread of its own (except one that looks up host names, if needed), so a caller that waits for a reply receives it
// itself, without a hop.
#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/io/poller.h"
#include "muster/transport/timer_queue.h"

namespace muster {

class BackgroundThread;

class TcpEventLoop final : public EventLoop {
 public:
  TcpEventLoop();
  ~TcpEventLoop() override;  // drops handlers and timers that haven't run

  absl::Time Now() const override;
  void Post(Handler handler) override;  // wakes a loop that sleeps
  TimerId CallAt(absl::Time when, Handler handler) override;
  void CancelTimer(TimerId timer) override;
  // With a deadline in the past it runs what is ready, once, and doesn't sleep.
  bool RunUntil(absl::FunctionRef<bool()> done, absl::Time deadline) override;

  // For tcp/ only.
  Poller& poller() { return poller_; }
  // Runs `work`, which may block, on another thread, one task after the other.
  void RunInBackground(absl::AnyInvocable<void()> work);

 private:
  Handler TakePosted();
  size_t PostedNow();
  bool FallAsleep();
  void WakeUp();

  Poller poller_;
  TimerQueue<Handler> timers_;

  Mutex mutex_;
  std::deque<Handler> posted_ ABSL_GUARDED_BY(mutex_);
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;  // asleep or about to be: a thread that posts must wake it
  std::atomic<bool> any_posted_{false};          // lets a waiting loop skip the lock

  std::unique_ptr<BackgroundThread> background_;  // last: its tasks may post
};

}  // namespace muster
