// A process of a simulated world, which can be killed and stopped, and its threads. A killed one is unwound: the
// innermost wait of each of its threads throws ProcessKilled, which ends the thread, so that a robust mutex it held is
// found with a dead owner. What the unwinding does has no effect outside: the network and the disk ignore the dead.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "muster/sim/simulated_world.h"

namespace muster {

// Thrown out of waits of a process that was killed, to the top of the thread. Nobody else catches it.
struct ProcessKilled {};

// The loop of one thread of a process.
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
  // "worker:1", "worker:1 heartbeats"
  const std::string& name() const { return name_; }

  // Once: `body` begins now.
  void Start(absl::AnyInvocable<void()> body);
  bool ended() const { return ended_; }

  // The calling thread is this one: computes for so long. Its handlers wait meanwhile.
  void Compute(absl::Duration duration);

 private:
  friend class SimulatedLoop;
  friend class SimulatedProcess;
  friend class SimulatedWorld;

  // An event for this thread; false: it computes, and will look at it later.
  bool Accept(EventLoop::Handler handler);
  // The next event for it, from any time until `deadline`; null: there was none.
  EventLoop::Handler Next(absl::Time deadline);
  void WaitUntil(absl::Time deadline);
  void ThrowIfKilled() const;
  void Main();

  SimulatedProcess& process_;
  SimulatedWorld& world_;
  const std::string name_;
  SimulatedLoop loop_;
  Turn turn_;
  absl::AnyInvocable<void()> body_;
  std::deque<EventLoop::Handler> inbox_;
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

  // `name`: of the thread; empty: it is the first.
  SimulatedThread& NewThread(const std::string& name = "");

  // Memory of the process that is given back only after its threads have gone: a dead process's arena is still mapped
  // when the kernel looks for the locks that it held.
  void Keep(std::shared_ptr<void> memory) { memory_.push_back(std::move(memory)); }

  bool alive() const { return alive_; }
  // All threads have come to their end.
  bool ended() const;

  // As SIGKILL, from outside: its threads end when it is their turn. (The end of its first thread does the same.)
  void Kill();
  // As SIGKILL in the middle of a handler: for hooks that its own threads run into. Doesn't return.
  [[noreturn]] void Die();
  // As SIGSTOP until then.
  void Pause(absl::Time until) { paused_until_ = std::max(paused_until_, until); }
  absl::Time paused_until() const { return paused_until_; }

  // Called when it dies, however that happens: connections close.
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
