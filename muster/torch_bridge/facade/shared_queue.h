// A bounded queue of tuples of tensors that the processes of a job share (docs/queues.md): TensorFlow's FIFOQueue with
// shared_name. A call may block; any number of threads may call. Thread-safe.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "muster/store/queues/queue_handle.h"
#include "muster/train/tensorflow/queue_runner.h"

namespace muster {

// QueueTensor(torch::kFloat32, {2, 3}) is float32 of shape {2, 3}. Throws Error: a type that variables can't have.
QueueComponent QueueTensor(torch::ScalarType type, std::vector<int64_t> shape = {});

// All functions throw Error with one of QueueClient's statuses: OutOfRange, the queue is closed and used up; Cancelled,
// it is closed; DeadlineExceeded; Unavailable.
class SharedQueue {
 public:
  explicit SharedQueue(std::unique_ptr<QueueHandle> handle) : handle_(std::move(handle)) {}

  // Waits for room. The tensors must have the queue's types and shapes, may be on any device, and are copied.
  void Enqueue(const std::vector<torch::Tensor>& element, absl::Duration timeout = absl::InfiniteDuration());
  // Waits for an element, and returns it on the CPU.
  std::vector<torch::Tensor> Dequeue(absl::Duration timeout = absl::InfiniteDuration());
  // Waits for n elements; component i is a tensor [n, shape of i].
  std::vector<torch::Tensor> DequeueMany(int64_t n, absl::Duration timeout = absl::InfiniteDuration());
  // Like DequeueMany, but once the queue is closed it may return fewer: the last ones.
  std::vector<torch::Tensor> DequeueUpTo(int64_t n, absl::Duration timeout = absl::InfiniteDuration());
  // Ends the input: enqueues that wait are let in, or Cancelled; later ones are Cancelled. Dequeues get the remaining
  // elements, then OutOfRange.
  void Close(bool cancel_pending_enqueues = false, absl::Duration timeout = absl::InfiniteDuration());
  // The number of elements in the queue.
  int64_t Size();
  bool IsClosed();

  QueueHandle& handle() { return *handle_; }

 private:
  std::vector<torch::Tensor> Take(int64_t n, bool small_batch, bool batched, absl::Duration timeout);

  std::unique_ptr<QueueHandle> handle_;
};

// Fills `queue`, which must outlive it: one thread for each of `enqueue` calls it until it throws an OutOfRange Error
// (its input is used up) or the coordinator stops; see queue_runner.h.
std::unique_ptr<QueueRunner> MakeQueueRunner(SharedQueue& queue, std::vector<std::function<void()>> enqueue);

}  // namespace muster
