// The time, the order of events and the threads of a simulated world. Whatever happens is an event, (time, whose,
// what), and the world runs them in order of time; a seeded hash decides between processes where the time is the same.
// Code that blocks (a worker's session) runs on a thread of its own, but one thread of a world runs at any moment: who
// waits in its loop's RunUntil runs the world on, until an event belongs to another thread, and hands over to that one.
// So a run is the same each time, and the sanitizers see ordinary threads with ordinary hand-overs.
//
// Everything here is used by the thread whose turn it is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/transport/event_loop.h"

namespace muster {

class SimulatedProcess;
class SimulatedThread;

// Where a thread waits until another one lets it go on. Thread-safe.
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
  explicit SimulatedWorld(uint64_t seed);
  ~SimulatedWorld();
  SimulatedWorld(const SimulatedWorld&) = delete;
  SimulatedWorld& operator=(const SimulatedWorld&) = delete;

  absl::Time Now() const { return clock_.Now(); }
  const Clock& clock() const { return clock_; }
  uint64_t seed() const { return seed_; }

  // A process without threads yet; lives as long as the world.
  SimulatedProcess& NewProcess(std::string name);

  // Something that happens to the world, and to no process: it can't be killed, and must not wait.
  void At(absl::Time when, EventLoop::Handler handler);

  enum class Ending {
    kOver,    // `over` said so
    kStuck,   // nothing can happen any more
    kTooLong  // the time or the number of events is over the limit
  };
  struct Limits {
    absl::Duration time = absl::Hours(2);
    uint64_t events = 400'000;
  };
  // Lets the world go on until `over` (looked at after each event).
  Ending Run(const std::function<bool()>& over, const Limits& limits);

  // Kills what still runs, waits for the threads, and frees the memory of the processes. To be called while everything
  // that the processes use is still there; nothing can happen afterwards.
  void End();

  // One line about what happens now. Kept only if somebody listens, so that runs without a listener cost no text.
  void Note(const std::function<std::string()>& line);
  void SetListener(std::function<void(absl::Time, const std::string&)> listener) { listener_ = std::move(listener); }
  bool has_listener() const { return listener_ != nullptr; }

  // Of all events so far (time, whose): two runs that went the same way have the same.
  uint64_t fingerprint() const { return fingerprint_; }
  uint64_t events() const { return events_run_; }

  // Whose turn it is; null: the one that called Run.
  SimulatedThread* current() const { return current_; }

 private:
  friend class SimulatedLoop;
  friend class SimulatedProcess;
  friend class SimulatedThread;
  struct Event {
    SimulatedThread* thread = nullptr;  // null: runs wherever the turn is
    SimulatedProcess* process = nullptr;
    EventLoop::Handler handler;  // null: the thread's wait is over
    bool even_if_dead = false;
  };
  struct Key {
    absl::Time when;
    uint64_t tie;
    uint64_t id;
    bool operator<(const Key& other) const {
      if (when != other.when) return when > other.when;
      return tie != other.tie ? tie > other.tie : id > other.id;
    }
  };

  uint64_t Add(absl::Time when, Event event);
  void Enqueue(uint64_t id, absl::Time when, Event event);
  void Cancel(uint64_t id) { live_.erase(id); }
  // Runs events until one is for a thread: that thread, or null when Run's caller is to go on.
  SimulatedThread* RunToThread();
  // Whether the next event may run now; false: Run has ended.
  bool Continue(absl::Time next);
  // The calling thread (null: Run's caller) has nothing to do: runs the world until it has.
  void PassTurn(SimulatedThread* from);
  // The calling thread is ending: somebody else goes on.
  void LeaveTurn();

  const uint64_t seed_;
  SimulatedClock clock_;
  std::vector<std::unique_ptr<SimulatedProcess>> processes_;
  uint64_t next_id_ = 1;
  std::vector<Key> queue_;  // a heap
  absl::flat_hash_map<uint64_t, Event> live_;
  uint64_t events_run_ = 0;
  uint64_t fingerprint_ = 0;
  std::function<void(absl::Time, const std::string&)> listener_;

  std::function<bool()> over_;
  absl::Time time_limit_;
  uint64_t event_limit_ = 0;
  Ending ending_ = Ending::kOver;
  SimulatedThread* current_ = nullptr;
  Turn main_turn_;
};

// A number that looks random and depends on nothing but its arguments.
uint64_t HashNumbers(uint64_t a, uint64_t b, uint64_t c = 0);

}  // namespace muster
