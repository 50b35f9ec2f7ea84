#include "muster/transport/io/tcp_event_loop.h"

#include <algorithm>
#include <utility>

#include "muster/base/background_thread.h"
#include "muster/base/clock.h"

namespace muster {

TcpEventLoop::TcpEventLoop() = default;
TcpEventLoop::~TcpEventLoop() = default;

absl::Time TcpEventLoop::Now() const { return RealClock().Now(); }

void TcpEventLoop::Post(Handler handler) {
  MutexLock lock(mutex_);
  posted_.push_back(std::move(handler));
  any_posted_.store(true, std::memory_order_release);
  if (std::exchange(asleep_, false)) poller_.Wake();
}

EventLoop::TimerId TcpEventLoop::CallAt(absl::Time when, Handler handler) {
  return timers_.Add(when, std::move(handler));
}

void TcpEventLoop::CancelTimer(TimerId timer) { timers_.Cancel(timer); }

void TcpEventLoop::RunInBackground(absl::AnyInvocable<void()> work) {
  if (background_ == nullptr) background_ = std::make_unique<BackgroundThread>();
  background_->Run(std::move(work));
}

EventLoop::Handler TcpEventLoop::TakePosted() {
  MutexLock lock(mutex_);
  if (posted_.empty()) return nullptr;
  Handler handler = std::move(posted_.front());
  posted_.pop_front();
  any_posted_.store(!posted_.empty(), std::memory_order_release);
  return handler;
}

size_t TcpEventLoop::PostedNow() {
  if (!any_posted_.load(std::memory_order_acquire)) return 0;
  MutexLock lock(mutex_);
  return posted_.size();
}

// False if there is something to run first.
bool TcpEventLoop::FallAsleep() {
  MutexLock lock(mutex_);
  asleep_ = posted_.empty();
  return asleep_;
}

void TcpEventLoop::WakeUp() {
  MutexLock lock(mutex_);
  asleep_ = false;
}

bool TcpEventLoop::RunUntil(absl::FunctionRef<bool()> done, absl::Time deadline) {
  if (done()) return true;
  while (true) {
    // Runs what is ready, each kind in its turn and none of them without end, so that none starves the others.
    bool ran = false;
    const absl::Time due = timers_.NextDue() == absl::InfiniteFuture() ? absl::InfinitePast() : Now();
    while (timers_.NextDue() <= due) {
      timers_.TakeFirst().second();
      ran = true;
      if (done()) return true;
    }
    for (size_t left = PostedNow(); left > 0; --left) {
      Handler handler = TakePosted();
      if (!handler) break;  // a nested RunUntil has run it
      handler();
      ran = true;
      if (done()) return true;
    }

    const absl::Time wake = std::min(deadline, timers_.NextDue());
    const absl::Duration left = wake == absl::InfiniteFuture() ? absl::InfiniteDuration() : wake - Now();
    if (!ran && left > absl::ZeroDuration() && FallAsleep()) {
      poller_.Wait(left);
      WakeUp();
    } else {
      poller_.Wait(absl::ZeroDuration());
    }
    while (poller_.RunNext()) {
      if (done()) return true;
    }
    if (deadline != absl::InfiniteFuture() && Now() >= deadline) return done();
  }
}

}  // namespace muster
