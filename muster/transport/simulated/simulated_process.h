// A process of a simulated world, which can be killed and stopped, and its threads. Killing unwinds it: the innermost
// wait of each thread throws ProcessKilled, which ends the thread, so that a robust mutex it held is found with a dead
// owner. The unwinding has no effect outside: the network and the disk ignore the dead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "muster/transport/simulated/simulated_world.h"

namespace muster {

// Thrown by the waits of a process that was killed, up to the top of the thread. Nothing else catches it.
struct ProcessKilled {};

// The event loop of one thread of a process, where its handlers run. The thread that owns the world can wait on it,
// too: it runs the world.
class SimulatedLoop final : public EventLoop {
 public:
  explicit SimulatedLoop(SimulatedThread& thread) : thread_(thread) {}

  absl::Time Now() const override;
  void Post(Handler handler) override;
  TimerId CallAt(absl::Time when, Handler handler) override;
  void CancelTimer(TimerId timer) override;
  bool RunUntil(absl::FunctionRef<bool()> done, absl::Time deadline) override;

 private:
  SimulatedThread& thread_;
};

class SimulatedThread {
 public:
  SimulatedThread(SimulatedProcess& process, std::string name);
  ~SimulatedThread();
  SimulatedThread(const SimulatedThread&) = delete;
  SimulatedThread& operator=(const SimulatedThread&) = delete;

  SimulatedLoop& loop() { return loop_; }
  const SimulatedProcess& process() const { return process_; }
  SimulatedProcess& process() { return process_; }
  // For example "worker:1", "worker:1 heartbeats".
  const std::string& name() const { return name_; }

  // Call once. Runs `body` from now on.
  void Start(absl::AnyInvocable<void()> body);
  bool ended() const { return ended_; }

  // Acts like a thread that hangs until then: in a lock, say. The others of its process go on.
  void Pause(absl::Time until) { paused_until_ = std::max(paused_until_, until); }
  absl::Time paused_until() const { return std::max(paused_until_, process_paused_until()); }

  // Simulates computing for `duration`. Must be called by this thread. Its handlers wait meanwhile.
  void Compute(absl::Duration duration);

 private:
  friend class SimulatedLoop;
  friend class SimulatedProcess;
  friend class SimulatedWorld;

  // Takes an event for this thread; false: it is computing and will look at the event later.
  bool Accept(EventLoop::Handler handler);
  // Waits for the thread's next event until `deadline`; null: there was none.
  EventLoop::Handler Next(absl::Time deadline);
  void WaitUntil(absl::Time deadline);
  void ThrowIfKilled() const;
  absl::Time process_paused_until() const;
  void Main();

  SimulatedProcess& process_;
  SimulatedWorld& world_;
  const std::string name_;
  SimulatedLoop loop_;
  Turn turn_;
  absl::AnyInvocable<void()> body_;
  std::deque<EventLoop::Handler> inbox_;
  absl::Time paused_until_ = absl::InfinitePast();
  bool computing_ = false;
  bool started_ = false;
  bool ended_ = false;
  std::thread thread_;
};

class SimulatedProcess {
 public:
  SimulatedProcess(SimulatedWorld& world, uint64_t number, std::string name);

  SimulatedWorld& world() { return world_; }
  uint64_t number() const { return number_; }
  const std::string& name() const { return name_; }

  // `name` is the thread's name; empty for the first thread.
  SimulatedThread& NewThread(const std::string& name = "");

  // Keeps memory of the process until its threads have gone: a dead process's arena is still mapped when the kernel
  // looks for the locks that it held.
  void Keep(std::shared_ptr<void> memory) { memory_.push_back(std::move(memory)); }

  bool alive() const { return alive_; }
  // Returns whether all threads have ended.
  bool ended() const;

  // Acts like SIGKILL from outside: its threads end at their next turn. (The end of its first thread does the same.)
  void Kill();
  // Acts like SIGKILL in the middle of a handler, for hooks called by its own threads. Doesn't return.
  [[noreturn]] void Die();
  // Acts like SIGSTOP until then.
  void Pause(absl::Time until) { paused_until_ = std::max(paused_until_, until); }
  absl::Time paused_until() const { return paused_until_; }

  // Calls `handler` when the process dies in any way; used to close connections.
  void AtDeath(std::function<void()> handler) { at_death_.push_back(std::move(handler)); }

 private:
  friend class SimulatedThread;
  friend class SimulatedWorld;
  void Join();

  SimulatedWorld& world_;
  const uint64_t number_;
  const std::string name_;
  bool alive_ = true;
  absl::Time paused_until_ = absl::InfinitePast();
  std::vector<std::function<void()>> at_death_;
  std::vector<std::shared_ptr<void>> memory_;
  std::vector<std::unique_ptr<SimulatedThread>> threads_;
};

}  // namespace muster
