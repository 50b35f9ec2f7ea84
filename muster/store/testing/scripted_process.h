// Processes of a test that share one simulated loop. Each has its own thread, but only one runs at a time: a process
// that waits lets the others go on, and goes on itself as soon as its condition holds. (Waits that are nested on one
// stack, as with the simulated loop alone, can only end in reverse order.) Nothing depends on how threads are
// scheduled. Used by the test's thread; a process's own thread uses it as its event loop.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "muster/base/check.h"
#include "muster/base/mutex.h"
#include "muster/transport/simulated/simulated_event_loop.h"

namespace muster {

class ScriptedProcess final : public EventLoop {
 public:
  // `world` must outlive it.
  explicit ScriptedProcess(SimulatedEventLoop& world) : world_(world), thread_([this] { Live(); }) {}
  ~ScriptedProcess() override {
    MUSTER_CHECK(!busy_);
    ends_ = true;
    Lend();
    thread_.join();
  }
  ScriptedProcess(const ScriptedProcess&) = delete;
  ScriptedProcess& operator=(const ScriptedProcess&) = delete;

  // Runs `work` until it waits or is over. The process must not be busy.
  void Start(absl::AnyInvocable<void()> work) {
    MUSTER_CHECK(!busy_);
    work_ = std::move(work);
    busy_ = true;
    Lend();
  }
  bool busy() const { return busy_; }

  // Lets the processes go on, in this order if several can, until none is busy (true) or for `patience` of simulated
  // time (false).
  static bool Drive(SimulatedEventLoop& world, std::span<ScriptedProcess* const> processes, absl::Duration patience) {
    const absl::Time give_up = world.Now() + patience;
    for (;;) {
      bool went_on = false;
      absl::Time next = give_up;
      for (ScriptedProcess* process : processes) {
        if (!process->ready()) continue;
        process->Lend();
        went_on = true;
      }
      if (went_on) continue;
      bool busy = false;
      for (const ScriptedProcess* process : processes) {
        if (!process->busy_) continue;
        busy = true;
        next = std::min(next, process->wait_->deadline);
      }
      if (!busy) return true;
      const auto any_ready = [&] {
        return std::any_of(processes.begin(), processes.end(), [](const auto* process) { return process->ready(); });
      };
      if (!world.RunUntil(any_ready, next)) return false;
    }
  }

  absl::Time Now() const override { return world_.Now(); }
  void Post(Handler handler) override { world_.Post(std::move(handler)); }
  TimerId CallAt(absl::Time when, Handler handler) override { return world_.CallAt(when, std::move(handler)); }
  void CancelTimer(TimerId timer) override { world_.CancelTimer(timer); }
  bool RunUntil(absl::FunctionRef<bool()> done, absl::Time deadline) override {
    if (std::this_thread::get_id() != thread_.get_id()) return world_.RunUntil(done, deadline);
    while (!world_.RunUntil(done, world_.Now())) {
      if (world_.Now() >= deadline) return false;
      wait_.emplace(Wait{done, deadline});
      GiveBack();
      wait_.reset();
    }
    return true;
  }

 private:
  struct Wait {
    absl::FunctionRef<bool()> done;
    absl::Time deadline;
  };

  bool ready() const { return busy_ && wait_ && (world_.Now() >= wait_->deadline || wait_->done()); }

  // Called by the test's thread: lets the process run until it gives back.
  void Lend() {
    MutexLock lock(mutex_);
    running_ = true;
    changed_.NotifyAll();
    while (running_) changed_.Wait(mutex_);
  }
  // Called by the process's thread: lets the test go on until it lends again.
  void GiveBack() {
    MutexLock lock(mutex_);
    running_ = false;
    changed_.NotifyAll();
    while (!running_) changed_.Wait(mutex_);
  }
  void Live() {
    {
      MutexLock lock(mutex_);
      while (!running_) changed_.Wait(mutex_);
    }
    while (!ends_) {
      std::exchange(work_, nullptr)();
      busy_ = false;
      GiveBack();
    }
    MutexLock lock(mutex_);
    running_ = false;
    changed_.NotifyAll();
  }

  SimulatedEventLoop& world_;
  Mutex mutex_;
  CondVar changed_;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  // Touched by the thread whose turn it is.
  absl::AnyInvocable<void()> work_;
  std::optional<Wait> wait_;
  bool busy_ = false;
  bool ends_ = false;
  std::thread thread_;  // last: it uses all of them
};

}  // namespace muster
