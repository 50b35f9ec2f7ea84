#include "muster/data/prefetcher.h"

#include <algorithm>
#include <utility>

#include "muster/base/check.h"

namespace muster {

Prefetcher::Prefetcher(std::unique_ptr<BatchSource> source, const PrefetcherOptions& options)
    : depth_(std::max<size_t>(options.depth, 1)), source_(std::move(source)) {}

Prefetcher::~Prefetcher() { MUSTER_CHECK(!thread_.joinable()); }

void Prefetcher::Start() {
  {
    MutexLock lock(mutex_);
    MUSTER_CHECK(state_ == State::kNew);
    state_ = State::kRunning;
  }
  thread_ = std::thread([this] { Run(); });
}

void Prefetcher::Stop() {
  {
    MutexLock lock(mutex_);
    state_ = State::kStopped;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Prefetcher::Run() {
  for (;;) {
    Batch batch;
    {
      MutexLock lock(mutex_);
      while (state_ == State::kRunning && ready_.size() >= depth_) changed_.Wait(mutex_);
      if (state_ != State::kRunning) return;
      if (!spare_.empty()) {
        batch = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    const absl::StatusOr<bool> made = source_->Next(batch);
    MutexLock lock(mutex_);
    if (made.ok() && *made) {
      ready_.push_back(std::move(batch));
    } else {
      error_ = made.status();
      if (state_ == State::kRunning) state_ = State::kEnded;
    }
    changed_.NotifyAll();
    if (state_ != State::kRunning) return;
  }
}

absl::StatusOr<bool> Prefetcher::Next(Batch& into) {
  MutexLock lock(mutex_);
  while (state_ == State::kRunning && ready_.empty()) changed_.Wait(mutex_);
  if (state_ == State::kNew) return absl::FailedPreconditionError("the prefetcher has not been started");
  if (state_ == State::kStopped) return absl::CancelledError("the prefetcher has been stopped");
  if (!ready_.empty()) {
    std::swap(into, ready_.front());
    spare_.push_back(std::move(ready_.front()));
    ready_.pop_front();
    changed_.NotifyAll();
    return true;
  }
  if (!error_.ok()) return error_;
  return false;
}

}  // namespace muster
