#include "muster/transport/simulated/simulated_world.h"

#include <algorithm>
#include <utility>

#include "muster/base/check.h"
#include "muster/transport/simulated/simulated_process.h"

namespace muster {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014).
uint64_t HashNumbers(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t x = a;
  for (const uint64_t next : {b, c}) {
    x += 0x9e3779b97f4a7c15 + next;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
  }
  return x;
}

void Turn::Give() {
  MutexLock lock(mutex_);
  mine_ = true;
  given_.NotifyOne();
}

void Turn::Take() {
  MutexLock lock(mutex_);
  while (!mine_) given_.Wait(mutex_);
  mine_ = false;
}

SimulatedWorld::SimulatedWorld(uint64_t seed) : seed_(seed) {}

SimulatedWorld::~SimulatedWorld() { End(); }

void SimulatedWorld::End() {
  listener_ = nullptr;
  for (auto& process : processes_) process->Kill();
  // Unwinds every thread; nothing else happens any more.
  const auto all_gone = [this] {
    return std::all_of(processes_.begin(), processes_.end(), [](const auto& process) { return process->ended(); });
  };
  const Ending ending = Run(all_gone, {.time = absl::ZeroDuration(), .events = ~uint64_t{0}});
  MUSTER_CHECK(ending == Ending::kOver);
  for (auto& process : processes_) process->Join();
  const TimerQueue<Event> gone = std::exchange(events_, {});
}

SimulatedProcess& SimulatedWorld::NewProcess(std::string name) {
  processes_.push_back(std::make_unique<SimulatedProcess>(*this, processes_.size() + 1, std::move(name)));
  return *processes_.back();
}

void SimulatedWorld::At(absl::Time when, EventLoop::Handler handler) { Add(when, {.handler = std::move(handler)}); }

bool SimulatedWorld::Loop::RunUntil(absl::FunctionRef<bool()> done, absl::Time deadline) {
  MUSTER_CHECK(world_.current_ == nullptr);
  // What is due by now runs even if the deadline has passed: it takes no time.
  const absl::Duration time = std::max(deadline - Now(), absl::ZeroDuration());
  if (world_.Run(done, {.time = time, .events = ~uint64_t{0}}) == Ending::kOver) return true;
  if (deadline != absl::InfiniteFuture()) world_.clock_.AdvanceTo(deadline);
  return done();
}

void SimulatedWorld::Note(const std::function<std::string()>& line) {
  if (listener_) listener_(Now(), line());
}

EventLoop::TimerId SimulatedWorld::Add(absl::Time when, Event event) {
  when = std::max(when, Now());
  const uint64_t tie = TieOf(event.process, when);
  return events_.Add(when, std::move(event), tie);
}

// All events of a process at one time have the same tie, so they stay in order.
uint64_t SimulatedWorld::TieOf(const SimulatedProcess* process, absl::Time when) const {
  return HashNumbers(seed_, process != nullptr ? process->number() : 0, absl::ToUnixNanos(when));
}

bool SimulatedWorld::Continue(absl::Time next) {
  if (bounds_.over()) {
    ending_ = Ending::kOver;
  } else if (next == absl::InfiniteFuture()) {
    ending_ = Ending::kStuck;
  } else if (next > bounds_.time || events_run_ >= bounds_.events) {
    ending_ = Ending::kTooLong;
  } else {
    return true;
  }
  return false;
}

SimulatedThread* SimulatedWorld::RunToThread() {
  while (true) {
    const absl::Time now = events_.NextDue();
    if (!Continue(now)) return nullptr;
    auto [id, event] = events_.TakeFirst();
    clock_.AdvanceTo(now);
    const SimulatedProcess* const process = event.process;
    if (process != nullptr && !event.even_if_dead) {
      if (!process->alive()) continue;
      const absl::Time later = event.thread != nullptr ? event.thread->paused_until() : process->paused_until();
      if (later > now) {
        events_.PutBack(id, later, std::move(event), TieOf(process, later));
        continue;
      }
    }
    ++events_run_;
    fingerprint_ = HashNumbers(fingerprint_, absl::ToUnixNanos(now), process != nullptr ? process->number() : 0);
    if (event.thread == nullptr) {
      event.handler();
    } else if (event.thread->Accept(std::move(event.handler))) {
      return event.thread;
    }
  }
}

void SimulatedWorld::PassTurn(SimulatedThread* from) {
  SimulatedThread* next = RunToThread();
  if (next == from) return;
  current_ = next;
  (next != nullptr ? next->turn_ : main_turn_).Give();
  (from != nullptr ? from->turn_ : main_turn_).Take();
}

void SimulatedWorld::LeaveTurn() {
  SimulatedThread* next = RunToThread();
  current_ = next;
  (next != nullptr ? next->turn_ : main_turn_).Give();
}

SimulatedWorld::Ending SimulatedWorld::Run(absl::FunctionRef<bool()> over, const Limits& limits) {
  Bounds outer = std::exchange(bounds_, {[&] { return over(); }, Now() + limits.time, limits.events});
  PassTurn(nullptr);
  bounds_ = std::move(outer);
  return ending_;
}

}  // namespace muster
