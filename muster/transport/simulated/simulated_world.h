// The time, the order of events and the threads of a simulated world. Everything that happens is an event (time,
// process, action). The world runs events in order of time; if the times of two processes are equal, a seeded hash
// decides. Code that blocks (a worker's session) runs on its own thread, but only one thread of a world runs at any
// moment: a thread that waits in its loop's RunUntil runs the world until an event belongs to another thread, and then
// passes the turn to that one. So every run is the same, and the sanitizers see ordinary threads with ordinary
// synchronization.
//
// Everything here is used by the thread whose turn it is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/timer_queue.h"

namespace muster {

class SimulatedProcess;
class SimulatedThread;

// Makes a thread wait until another one gives it the turn. Thread-safe.
class Turn {
 public:
  void Give();
  void Take();

 private:
  Mutex mutex_;
  CondVar given_;
  bool mine_ ABSL_GUARDED_BY(mutex_) = false;
};

class SimulatedWorld {
 public:
  explicit SimulatedWorld(uint64_t seed = 1);
  ~SimulatedWorld();
  SimulatedWorld(const SimulatedWorld&) = delete;
  SimulatedWorld& operator=(const SimulatedWorld&) = delete;

  absl::Time Now() const { return clock_.Now(); }
  const Clock& clock() const { return clock_; }
  uint64_t seed() const { return seed_; }

  // Makes a process without threads, which lives as long as the world.
  SimulatedProcess& NewProcess(std::string name);

  // Schedules an event of the world itself, not of a process: it can't be killed and must not wait.
  void At(absl::Time when, EventLoop::Handler handler);
  // For such things. The thread that owns the world can wait on it: RunUntil runs the world until then, also from
  // within a handler. Without a deadline and with nothing that can happen any more it returns.
  EventLoop& loop() { return loop_; }
  // Runs what is due now, and everything that follows from it at once.
  void RunReady() {
    loop_.RunUntil([] { return false; }, Now());
  }

  enum class Ending {
    kOver,    // `over` returned true
    kStuck,   // nothing can happen any more
    kTooLong  // a limit on time or events was exceeded
  };
  struct Limits {
    absl::Duration time = absl::Hours(2);
    uint64_t events = 400'000;
  };
  // Runs the world until `over`, which is checked before each event.
  Ending Run(absl::FunctionRef<bool()> over, const Limits& limits);

  // Kills what still runs, waits for the threads, and frees the memory of the processes. Must be called while
  // everything that the processes use still exists; nothing can happen afterwards.
  void End();

  // Reports in one line what happens now. Calls `line` only if there is a listener, so other runs don't make text.
  void Note(const std::function<std::string()>& line);
  void SetListener(std::function<void(absl::Time, const std::string&)> listener) { listener_ = std::move(listener); }

  // A hash over all events so far (time, process): equal for two runs that went the same way.
  uint64_t fingerprint() const { return fingerprint_; }
  uint64_t events() const { return events_run_; }

  // The thread whose turn it is; null: the one that called Run.
  SimulatedThread* current() const { return current_; }

 private:
  friend class SimulatedLoop;
  friend class SimulatedProcess;
  friend class SimulatedThread;
  struct Event {
    SimulatedThread* thread = nullptr;  // null: runs in whichever thread has the turn
    SimulatedProcess* process = nullptr;
    EventLoop::Handler handler;  // null: the thread's wait is over
    bool even_if_dead = false;
  };
  struct Bounds {
    std::function<bool()> over;
    absl::Time time;
    uint64_t events = 0;
  };

  class Loop final : public EventLoop {
   public:
    explicit Loop(SimulatedWorld& world) : world_(world) {}
    absl::Time Now() const override { return world_.Now(); }
    void Post(Handler handler) override { CallAt(Now(), std::move(handler)); }
    TimerId CallAt(absl::Time when, Handler handler) override {
      return world_.Add(when, {.handler = std::move(handler)});
    }
    void CancelTimer(TimerId timer) override { world_.events_.Cancel(timer); }
    bool RunUntil(absl::FunctionRef<bool()> done, absl::Time deadline) override;

   private:
    SimulatedWorld& world_;
  };

  EventLoop::TimerId Add(absl::Time when, Event event);
  uint64_t TieOf(const SimulatedProcess* process, absl::Time when) const;
  // Runs events until one is for a thread and returns that thread; null if Run's caller must continue.
  SimulatedThread* RunToThread();
  // Returns whether the next event may run now; false: Run has ended.
  bool Continue(absl::Time next);
  // Called by a thread (null: Run's caller) that has nothing to do: runs the world until it has.
  void PassTurn(SimulatedThread* from);
  // Called by a thread that ends: passes the turn to another one.
  void LeaveTurn();

  const uint64_t seed_;
  SimulatedClock clock_;
  Loop loop_{*this};
  std::vector<std::unique_ptr<SimulatedProcess>> processes_;
  TimerQueue<Event> events_;
  uint64_t events_run_ = 0;
  uint64_t fingerprint_ = 0;
  std::function<void(absl::Time, const std::string&)> listener_;

  Bounds bounds_;
  Ending ending_ = Ending::kOver;
  SimulatedThread* current_ = nullptr;
  Turn main_turn_;
};

// Returns a number that looks random and depends only on its arguments.
uint64_t HashNumbers(uint64_t a, uint64_t b, uint64_t c = 0);

}  // namespace muster
