// A queue on a ps as a program uses it: by as many threads as it likes, each of which may wait. A concurrent call has a
// connection, an event loop and a lane (queue_client.h) of its own, which later calls use again. Thread-safe.
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
  // Nothing is sent yet. `spec` is valid.
  QueueHandle(JobToken token, std::string address, QueueSpec spec, QueueClientOptions options);
  // No call may be under way.
  ~QueueHandle();
  QueueHandle(const QueueHandle&) = delete;
  QueueHandle& operator=(const QueueHandle&) = delete;

  const QueueSpec& spec() const { return spec_; }

  // All of them block, for `timeout` at most and a second; errors as those of QueueClient.
  [[nodiscard]] absl::Status Open(absl::Duration timeout);
  // Waits for room. The bytes of each component, borrowed for the call.
  [[nodiscard]] absl::Status Enqueue(const Segments& element, absl::Duration timeout = absl::InfiniteDuration());
  // Waits for `count` elements; `small_batch`: once the queue is closed fewer will do, if there is at least one.
  absl::StatusOr<QueueBatch> Dequeue(uint64_t count = 1, bool small_batch = false,
                                     absl::Duration timeout = absl::InfiniteDuration());
  // No more enqueues: those that wait are let in, or with `cancel_pending` Cancelled.
  [[nodiscard]] absl::Status Close(bool cancel_pending = false, absl::Duration timeout = absl::InfiniteDuration());
  // How many elements there are, and whether it is closed.
  absl::StatusOr<QueueReply> Size(absl::Duration timeout = absl::InfiniteDuration());

 private:
  struct Lane;

  using Owes = absl::FunctionRef<bool(const QueueClient& client)>;
  // With a lane that nobody else uses: one whose last dequeue `owes` these elements, or one that owes nothing.
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
