// Threads that fill a queue. Each calls its function, which enqueues something, until the input is used up, the queue
// is closed, or the coordinator stops. TensorFlow: python/training/queue_runner_impl.py. docs/queues.md, "QueueRunner",
// describes each case.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/base/mutex.h"
#include "muster/train/threads/coordinated_thread.h"
#include "muster/train/threads/coordinator.h"

namespace muster {

struct QueueRunnerOptions {
  std::string name = "queue_runner";  // names its threads in messages
  // One thread for each. OutOfRange: its input is used up. Cancelled: the queue is closed. It may block, because
  // `close` ends that; it may throw.
  std::vector<std::function<absl::Status()>> enqueue;
  // Closes the queue; `cancel_pending` also cancels the enqueues that wait. Called by the runner's threads.
  std::function<absl::Status(bool cancel_pending)> close;
};

// Used by one thread.
class QueueRunner {
 public:
  explicit QueueRunner(QueueRunnerOptions options);
  // Requests a stop of the coordinator, if there was none since Start, and waits for the threads: they use what is
  // destroyed next. So an exception that leaves the scope of a runner isn't held up by it. If the coordinator has
  // stopped since Start, the runner leaves it alone: it may be gone, or at work again after a recovery.
  ~QueueRunner();
  QueueRunner(const QueueRunner&) = delete;
  QueueRunner& operator=(const QueueRunner&) = delete;

  // Starts the threads, registered with `coordinator`, which stops them and waits for them if it ends before this. Call
  // it once; AlreadyExists after that.
  [[nodiscard]] absl::Status Start(Coordinator& coordinator);

 private:
  absl::Status Enqueue(const std::function<absl::Status()>& enqueue);
  // A thread's input is used up. The last such thread closes the queue.
  void UsedUp();
  void CloseOnStop();

  const QueueRunnerOptions options_;
  Coordinator* coordinator_ = nullptr;  // null: not started

  Mutex mutex_;
  size_t filling_ ABSL_GUARDED_BY(mutex_) = 0;    // threads that may still enqueue
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // the coordinator has, since Start

  std::list<CoordinatedThread> threads_;  // last: their ends use what stands above
};

}  // namespace muster
