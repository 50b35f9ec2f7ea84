#include "muster/transport/simulated/simulated_process.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {

absl::Time SimulatedLoop::Now() const { return thread_.world_.Now(); }

void SimulatedLoop::Post(Handler handler) { CallAt(Now(), std::move(handler)); }

EventLoop::TimerId SimulatedLoop::CallAt(absl::Time when, Handler handler) {
  if (!thread_.process_.alive()) return TimerId{};
  if (when == absl::InfiniteFuture()) return TimerId{};
  return thread_.world_.Add(when, {.thread = &thread_, .process = &thread_.process_, .handler = std::move(handler)});
}

void SimulatedLoop::CancelTimer(TimerId timer) { thread_.world_.events_.Cancel(timer); }

bool SimulatedLoop::RunUntil(absl::FunctionRef<bool()> done, absl::Time deadline) {
  if (thread_.world_.current() == nullptr) return thread_.world_.loop().RunUntil(done, deadline);
  while (true) {
    // While a killed process is unwound a destructor may wait; there is nothing to wait for.
    if (!thread_.process_.alive() && std::uncaught_exceptions() > 0) return done();
    thread_.ThrowIfKilled();
    if (done()) return true;
    Handler handler = thread_.Next(deadline);
    if (handler == nullptr) return done();
    handler();
  }
}

SimulatedThread::SimulatedThread(SimulatedProcess& process, std::string name)
    : process_(process), world_(process.world()), name_(std::move(name)), loop_(*this) {}

SimulatedThread::~SimulatedThread() {
  if (thread_.joinable()) thread_.join();
}

void SimulatedThread::Start(absl::AnyInvocable<void()> body) {
  body_ = std::move(body);
  started_ = true;
  thread_ = std::thread([this] { Main(); });
  // Schedules its first turn.
  world_.Add(world_.Now(), {.thread = this, .process = &process_, .even_if_dead = true});
}

void SimulatedThread::Main() {
  turn_.Take();
  try {
    ThrowIfKilled();
    body_();
    // Like a return from main: the other threads of the process end, too.
    if (process_.threads_.front().get() == this) process_.Kill();
  } catch (const ProcessKilled&) {
    inbox_.clear();
  }
  ended_ = true;
  world_.LeaveTurn();
}

void SimulatedThread::ThrowIfKilled() const {
  if (!process_.alive()) throw ProcessKilled{};
}

absl::Time SimulatedThread::process_paused_until() const { return process_.paused_until(); }

bool SimulatedThread::Accept(EventLoop::Handler handler) {
  if (ended_) return false;
  if (handler == nullptr) return true;
  inbox_.push_back(std::move(handler));
  return !computing_;
}

EventLoop::Handler SimulatedThread::Next(absl::Time deadline) {
  if (inbox_.empty()) WaitUntil(deadline);
  if (inbox_.empty()) return nullptr;
  EventLoop::Handler handler = std::move(inbox_.front());
  inbox_.pop_front();
  return handler;
}

void SimulatedThread::WaitUntil(absl::Time deadline) {
  EventLoop::TimerId wake{};
  if (deadline != absl::InfiniteFuture()) wake = world_.Add(deadline, {.thread = this, .process = &process_});
  world_.PassTurn(this);
  world_.events_.Cancel(wake);
  ThrowIfKilled();
}

void SimulatedThread::Compute(absl::Duration duration) {
  if (!process_.alive() && std::uncaught_exceptions() > 0) return;
  ThrowIfKilled();
  computing_ = true;
  WaitUntil(world_.Now() + duration);
  computing_ = false;
}

SimulatedProcess::SimulatedProcess(SimulatedWorld& world, uint64_t number, std::string name)
    : world_(world), number_(number), name_(std::move(name)) {}

SimulatedThread& SimulatedProcess::NewThread(const std::string& name) {
  threads_.push_back(std::make_unique<SimulatedThread>(*this, name.empty() ? name_ : absl::StrCat(name_, " ", name)));
  return *threads_.back();
}

bool SimulatedProcess::ended() const {
  return std::all_of(threads_.begin(), threads_.end(), [](const auto& t) { return !t->started_ || t->ended_; });
}

void SimulatedProcess::Kill() {
  if (!alive_) return;
  alive_ = false;
  for (auto& handler : at_death_) handler();
  for (auto& thread : threads_)
    if (thread->started_ && !thread->ended_)
      world_.Add(world_.Now(), {.thread = thread.get(), .process = this, .even_if_dead = true});
}

void SimulatedProcess::Die() {
  Kill();
  throw ProcessKilled{};
}

void SimulatedProcess::Join() {
  for (auto& thread : threads_)
    if (thread->thread_.joinable()) thread->thread_.join();
  while (!memory_.empty()) memory_.pop_back();  // what was kept later may use what was kept earlier
}

}  // namespace muster
