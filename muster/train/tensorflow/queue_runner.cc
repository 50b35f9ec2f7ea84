#include "muster/train/tensorflow/queue_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"

namespace muster {

QueueRunner::QueueRunner(QueueRunnerOptions options) : options_(std::move(options)) {
  MUSTER_CHECK(options_.close != nullptr);
}

QueueRunner::~QueueRunner() {
  bool stopped = false;
  {
    const MutexLock lock(mutex_);
    stopped = stopped_;
  }
  // Until stopped_ is set, CloseOnStop's thread is registered, and the coordinator outlives it.
  if (coordinator_ != nullptr && !stopped) coordinator_->RequestStop();
}

absl::Status QueueRunner::Start(Coordinator& coordinator) {
  if (coordinator_ != nullptr)
    return absl::AlreadyExistsError(absl::StrCat("the threads of ", options_.name, " have been started already"));
  coordinator_ = &coordinator;
  {
    const MutexLock lock(mutex_);
    filling_ = options_.enqueue.size();
  }
  for (size_t i = 0; i < options_.enqueue.size(); ++i)
    threads_.emplace_back(coordinator, absl::StrCat(options_.name, "/", i),
                          [this, i] { return Enqueue(options_.enqueue[i]); });
  threads_.emplace_back(coordinator, absl::StrCat(options_.name, "/close_on_stop"), [this] {
    CloseOnStop();
    return absl::OkStatus();
  });
  return absl::OkStatus();
}

absl::Status QueueRunner::Enqueue(const std::function<absl::Status()>& enqueue) {
  while (!coordinator_->ShouldStop()) {
    absl::Status status = enqueue();
    if (status.ok()) continue;
    if (absl::IsOutOfRange(status)) {
      UsedUp();
      return absl::OkStatus();
    }
    // Somebody has closed the queue, or CloseOnStop has cancelled this enqueue.
    if (absl::IsCancelled(status)) return absl::OkStatus();
    return status;
  }
  return absl::OkStatus();
}

void QueueRunner::UsedUp() {
  {
    const MutexLock lock(mutex_);
    if (--filling_ > 0) return;
  }
  if (const absl::Status closed = options_.close(/*cancel_pending=*/false); !closed.ok())
    LogWarning(options_.name, " could not close its queue: ", closed.message());
}

void QueueRunner::CloseOnStop() {
  coordinator_->WaitForStop();
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  if (const absl::Status closed = options_.close(/*cancel_pending=*/true); !closed.ok() && !absl::IsCancelled(closed))
    LogWarning(options_.name, " could not close its queue at the stop: ", closed.message());
}

}  // namespace muster
