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
  live_.clear();
  queue_.clear();
}

SimulatedProcess& SimulatedWorld::NewProcess(std::string name) {
  processes_.push_back(std::make_unique<SimulatedProcess>(*this, processes_.size() + 1, std::move(name)));
  return *processes_.back();
}

void SimulatedWorld::At(absl::Time when, EventLoop::Handler handler) { Add(when, {.handler = std::move(handler)}); }

bool SimulatedWorld::Loop::RunUntil(absl::FunctionRef<bool()>, absl::Time) {
  MUSTER_CHECK(false);
  return false;
}

void SimulatedWorld::Note(const std::function<std::string()>& line) {
  if (listener_) listener_(Now(), line());
}

uint64_t SimulatedWorld::Add(absl::Time when, Event event) {
  const uint64_t id = next_id_++;
  Enqueue(id, std::max(when, Now()), std::move(event));
  return id;
}

void SimulatedWorld::Enqueue(uint64_t id, absl::Time when, Event event) {
  // All events of a process at one time have the same tie, so they stay in order.
  const uint64_t whose = event.process != nullptr ? event.process->number() : 0;
  queue_.push_back({when, HashNumbers(seed_, whose, absl::ToUnixNanos(when)), id});
  std::push_heap(queue_.begin(), queue_.end());
  live_.emplace(id, std::move(event));
}

bool SimulatedWorld::Continue(absl::Time next) {
  if (over_()) {
    ending_ = Ending::kOver;
  } else if (next == absl::InfiniteFuture()) {
    ending_ = Ending::kStuck;
  } else if (next > time_limit_ || events_run_ >= event_limit_) {
    ending_ = Ending::kTooLong;
  } else {
    return true;
  }
  return false;
}

SimulatedThread* SimulatedWorld::RunToThread() {
  while (true) {
    while (!queue_.empty() && !live_.contains(queue_.front().id)) {
      std::pop_heap(queue_.begin(), queue_.end());
      queue_.pop_back();
    }
    const absl::Time next = queue_.empty() ? absl::InfiniteFuture() : queue_.front().when;
    if (!Continue(next)) return nullptr;
    const Key key = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end());
    queue_.pop_back();
    clock_.AdvanceTo(key.when);
    const auto it = live_.find(key.id);
    Event event = std::move(it->second);
    live_.erase(it);
    if (event.process != nullptr && !event.even_if_dead) {
      if (!event.process->alive()) continue;
      if (event.process->paused_until() > key.when) {
        // Keeps its number, by which it can still be cancelled.
        const absl::Time later = event.process->paused_until();
        Enqueue(key.id, later, std::move(event));
        continue;
      }
    }
    ++events_run_;
    fingerprint_ =
        HashNumbers(fingerprint_, absl::ToUnixNanos(key.when), event.process != nullptr ? event.process->number() : 0);
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

SimulatedWorld::Ending SimulatedWorld::Run(const std::function<bool()>& over, const Limits& limits) {
  over_ = over;
  time_limit_ = Now() + limits.time;
  event_limit_ = limits.events;
  PassTurn(nullptr);
  return ending_;
}

}  // namespace muster
