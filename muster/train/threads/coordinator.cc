#include "muster/train/threads/coordinator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"
#include "muster/train/threads/error.h"

namespace muster {

Coordinator::~Coordinator() {
  RequestStop();
  const MutexLock lock(mutex_);
  while (alive_ > 0) changed_.Wait(mutex_);
}

Coordinator::Registration Coordinator::Register(std::string name) {
  const MutexLock lock(mutex_);
  const uint64_t id = next_id_++;
  threads_.emplace(id, std::move(name));
  ++alive_;
  return Registration(this, id);
}

void Coordinator::Leave(uint64_t id) {
  const MutexLock lock(mutex_);
  threads_.erase(id);
  --alive_;
  changed_.NotifyAll();
}

void Coordinator::RequestStop() { Stop(absl::OkStatus(), nullptr).IgnoreError(); }

absl::Status Coordinator::RequestStop(const absl::Status& why) { return Stop(why, nullptr); }

absl::Status Coordinator::RequestStop(const std::exception_ptr& why) { return Stop(ErrorOf(why), why); }

absl::Status Coordinator::Stop(const absl::Status& why, const std::exception_ptr& exception) {
  const auto& clean = options_.clean_stop;
  const bool fails = !why.ok() && std::find(clean.begin(), clean.end(), why.code()) == clean.end();
  const MutexLock lock(mutex_);
  if (joined_) return fails ? why : absl::OkStatus();
  if (fails && stop_) LogWarning("after the stop was requested: ", why.message());
  if (stop_) return absl::OkStatus();
  stop_ = true;
  if (fails) {
    LogInfo("Error reported to Coordinator: ", why.message());
    error_ = why;
    exception_ = exception;
  }
  changed_.NotifyAll();
  return absl::OkStatus();
}

bool Coordinator::ShouldStop() const {
  const MutexLock lock(mutex_);
  return stop_;
}

bool Coordinator::WaitForStop(absl::Duration timeout) {
  const MutexLock lock(mutex_);
  const absl::Time deadline = options_.clock->Now() + timeout;
  while (!stop_ && options_.clock->Now() < deadline) options_.clock->WaitUntil(changed_, mutex_, deadline);
  return stop_;
}

bool Coordinator::StopOnError(absl::FunctionRef<absl::Status()> work) {
  absl::Status unheard;
  bool failed = true;
  try {
    const absl::Status status = work();
    failed = !status.ok();
    if (failed) unheard = RequestStop(status);
  } catch (...) {
    unheard = RequestStop(std::current_exception());
  }
  if (!unheard.ok()) LogError("a thread failed after Join: ", unheard.message());
  return !failed;
}

void Coordinator::AwaitThreads(absl::Duration grace_period) {
  while (!threads_.empty() && !stop_) options_.clock->WaitUntil(changed_, mutex_, absl::InfiniteFuture());
  const absl::Time deadline = options_.clock->Now() + grace_period;
  while (!threads_.empty() && options_.clock->Now() < deadline) options_.clock->WaitUntil(changed_, mutex_, deadline);
}

absl::Status Coordinator::Join(const CoordinatorJoinOptions& options) {
  const MutexLock lock(mutex_);
  AwaitThreads(options.stop_grace_period);
  joined_ = true;
  std::vector<std::string> stragglers;
  for (const auto& [id, name] : threads_) stragglers.push_back(name);
  threads_.clear();
  if (!error_.ok() || stragglers.empty()) return error_;
  const std::string message =
      absl::StrCat("Coordinator stopped with threads still running: ", absl::StrJoin(stragglers, " "));
  if (!options.ignore_live_threads) return absl::FailedPreconditionError(message);
  LogInfo(message);
  return absl::OkStatus();
}

bool Coordinator::joined() const {
  const MutexLock lock(mutex_);
  return joined_;
}

absl::Status Coordinator::requested_error() const {
  const MutexLock lock(mutex_);
  return error_;
}

std::exception_ptr Coordinator::requested_exception() const {
  const MutexLock lock(mutex_);
  return exception_;
}

absl::Status Coordinator::ClearStop() {
  const MutexLock lock(mutex_);
  if (alive_ > 0)
    return absl::FailedPreconditionError(
        absl::StrCat(alive_, " threads haven't ended within the grace period, and none can be started beside them"));
  stop_ = false;
  joined_ = false;
  error_ = absl::OkStatus();
  exception_ = nullptr;
  return absl::OkStatus();
}

}  // namespace muster
