// A queue on a ps for a program with any number of threads, each of which may wait. A concurrent call has its own
// connection, event loop and lane (queue_client.h), which later calls reuse. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/store/queues/queue_client.h"
#include "muster/transport/transport.h"

namespace muster {

class QueueHandle {
 public:
  // Sends nothing yet. `spec` must be valid.
  QueueHandle(JobToken token, std::string address, QueueSpec spec, QueueClientOptions options);
  // No call may be under way.
  ~QueueHandle();
  QueueHandle(const QueueHandle&) = delete;
  QueueHandle& operator=(const QueueHandle&) = delete;

  const QueueSpec& spec() const { return spec_; }

  // All of these block, for at most `timeout` plus a second; same errors as QueueClient.
  [[nodiscard]] absl::Status Open(absl::Duration timeout);
  // Waits for room. `element`: the bytes of each component, borrowed for the call.
  [[nodiscard]] absl::Status Enqueue(const Segments& element, absl::Duration timeout = absl::InfiniteDuration());
  // Waits for `count` elements; `small_batch`: fewer will do once the queue is closed, but at least one.
  absl::StatusOr<QueueBatch> Dequeue(uint64_t count = 1, bool small_batch = false,
                                     absl::Duration timeout = absl::InfiniteDuration());
  // Accepts no more enqueues: those that wait are let in, or Cancelled if `cancel_pending`.
  [[nodiscard]] absl::Status Close(bool cancel_pending = false, absl::Duration timeout = absl::InfiniteDuration());
  // Returns how many elements there are, and whether the queue is closed.
  absl::StatusOr<QueueReply> Size(absl::Duration timeout = absl::InfiniteDuration());

 private:
  struct Lane;

  using Owes = absl::FunctionRef<bool(const QueueClient& client)>;
  // Calls with a lane that nobody else uses: one whose last dequeue `owes` these elements, or one that owes nothing.
  absl::Status With(Owes owes, absl::Duration timeout,
                    absl::FunctionRef<absl::Status(QueueClient& client, absl::Time deadline)> call);
  std::unique_ptr<Lane> Take(Owes owes);

  const JobToken token_;
  const std::string address_;
  const QueueSpec spec_;
  const QueueClientOptions options_;

  Mutex mutex_;
  std::vector<std::unique_ptr<Lane>> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
