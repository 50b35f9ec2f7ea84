// A bounded queue of tuples of tensors that the processes of a job share (docs/queues.md): TensorFlow's FIFOQueue with
// shared_name. A call may wait; any number of threads may call. Thread-safe.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/store/queues/queue_handle.h"
#include "muster/train/tensorflow/queue_runner.h"

namespace muster {

// float32 of shape {2, 3}: QueueTensor(torch::kFloat32, {2, 3}). Throws Error: a type that variables can't have.
QueueComponent QueueTensor(torch::ScalarType type, std::vector<int64_t> shape = {});

// Throws Error, whose status is one of QueueClient's: OutOfRange, the queue is closed and used up; Cancelled, it is
// closed; DeadlineExceeded; Unavailable.
class SharedQueue {
 public:
  explicit SharedQueue(std::unique_ptr<QueueHandle> handle) : handle_(std::move(handle)) {}

  // Waits for room. The tensors have the queue's types and shapes, may lie on any device, and are copied.
  void Enqueue(const std::vector<torch::Tensor>& element, absl::Duration timeout = absl::InfiniteDuration());
  // Waits for an element. On the CPU.
  std::vector<torch::Tensor> Dequeue(absl::Duration timeout = absl::InfiniteDuration());
  // Waits for n; component i is a tensor [n, shape of i].
  std::vector<torch::Tensor> DequeueMany(int64_t n, absl::Duration timeout = absl::InfiniteDuration());
  // As DequeueMany, but once the queue is closed the last ones come, if they are fewer.
  std::vector<torch::Tensor> DequeueUpTo(int64_t n, absl::Duration timeout = absl::InfiniteDuration());
  // No more elements: enqueues that wait are let in, or Cancelled; later ones are. Dequeues get what is there, and then
  // OutOfRange.
  void Close(bool cancel_pending_enqueues = false, absl::Duration timeout = absl::InfiniteDuration());
  // Elements that are there.
  int64_t Size();
  bool IsClosed();

  QueueHandle& handle() { return *handle_; }

 private:
  std::vector<torch::Tensor> Take(int64_t n, bool small_batch, bool batched, absl::Duration timeout);

  std::unique_ptr<QueueHandle> handle_;
};

// Fills `queue`, which must outlive it: a thread calls each of `enqueue` until it throws an OutOfRange Error (its input
// is used up) or the coordinator stops; see queue_runner.h.
std::unique_ptr<QueueRunner> MakeQueueRunner(SharedQueue& queue, std::vector<std::function<void()>> enqueue);

}  // namespace muster
