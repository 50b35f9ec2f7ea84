#include "muster/torch_bridge/facade/shared_queue.h"

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/torch_bridge/module/torch_dtype.h"
#include "muster/torch_bridge/module/torch_status.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

// Shorter than a ps's whole patience, so that a ps that is gone doesn't hold up the end of a program for that long.
constexpr absl::Duration kCloseTimeout = absl::Seconds(10);

absl::Status CheckTensor(const QueueSpec& spec, size_t i, const torch::Tensor& tensor) {
  const QueueComponent& component = spec.components[i];
  if (tensor.defined() && DTypeFromTorch(tensor.scalar_type()) == component.dtype &&
      tensor.sizes() == torch::IntArrayRef(component.shape))
    return absl::OkStatus();
  std::string given = "an undefined tensor";
  if (tensor.defined()) {
    const auto dtype = DTypeFromTorch(tensor.scalar_type());
    given = dtype ? DescribeComponent({*dtype, tensor.sizes().vec()})
                  : absl::StrCat(c10::toString(tensor.scalar_type()), "[", absl::StrJoin(tensor.sizes(), ","), "]");
  }
  return absl::InvalidArgumentError(absl::StrCat("component ", i, " of queue '", spec.name, "' is ",
                                                 DescribeComponent(component), "; given: ", given));
}

}  // namespace

QueueComponent QueueTensor(torch::ScalarType type, std::vector<int64_t> shape) {
  const auto dtype = DTypeFromTorch(type);
  if (!dtype)
    throw Error(absl::InvalidArgumentError(absl::StrCat("a queue can't hold tensors of type ", c10::toString(type))));
  return {*dtype, std::move(shape)};
}

void SharedQueue::Enqueue(const std::vector<torch::Tensor>& element, absl::Duration timeout) {
  ThrowIfError(CatchTorch("the element of a queue", [&]() -> absl::Status {
    const QueueSpec& spec = handle_->spec();
    if (element.size() != spec.components.size())
      return absl::InvalidArgumentError(absl::StrCat("an element of queue '", spec.name, "' has ",
                                                     spec.components.size(), " tensors, not ", element.size()));
    std::vector<torch::Tensor> held;
    Segments bytes;
    for (size_t i = 0; i < element.size(); ++i) {
      if (absl::Status status = CheckTensor(spec, i, element[i]); !status.ok()) return status;
      held.push_back(element[i].detach().to(torch::kCPU).contiguous());
      bytes.emplace_back(static_cast<const std::byte*>(held.back().data_ptr()), held.back().nbytes());
    }
    return handle_->Enqueue(bytes, timeout);
  }));
}

std::vector<torch::Tensor> SharedQueue::Take(int64_t n, bool small_batch, bool batched, absl::Duration timeout) {
  std::vector<torch::Tensor> tensors;
  ThrowIfError(CatchTorch("the elements of a queue", [&]() -> absl::Status {
    auto batch = handle_->Dequeue(n > 0 ? static_cast<uint64_t>(n) : 0, small_batch, timeout);
    if (!batch.ok()) return batch.status();
    const QueueSpec& spec = handle_->spec();
    for (size_t i = 0; i < spec.components.size(); ++i) {
      std::vector<int64_t> shape = spec.components[i].shape;
      if (batched) shape.insert(shape.begin(), static_cast<int64_t>(batch->elements));
      tensors.push_back(torch::empty(shape, TorchDType(spec.components[i].dtype)));
      const ByteSpan bytes = batch->Component(spec, i);
      if (!bytes.empty()) std::memcpy(tensors.back().data_ptr(), bytes.data(), bytes.size());
    }
    return absl::OkStatus();
  }));
  return tensors;
}

std::vector<torch::Tensor> SharedQueue::Dequeue(absl::Duration timeout) { return Take(1, false, false, timeout); }

std::vector<torch::Tensor> SharedQueue::DequeueMany(int64_t n, absl::Duration timeout) {
  return Take(n, false, true, timeout);
}

std::vector<torch::Tensor> SharedQueue::DequeueUpTo(int64_t n, absl::Duration timeout) {
  return Take(n, true, true, timeout);
}

void SharedQueue::Close(bool cancel_pending_enqueues, absl::Duration timeout) {
  ThrowIfError(handle_->Close(cancel_pending_enqueues, timeout));
}

int64_t SharedQueue::Size() { return static_cast<int64_t>(ValueOrThrow(handle_->Size()).size); }

bool SharedQueue::IsClosed() { return ValueOrThrow(handle_->Size()).closed; }

std::unique_ptr<QueueRunner> MakeQueueRunner(SharedQueue& queue, std::vector<std::function<void()>> enqueue) {
  QueueRunnerOptions options{.name = absl::StrCat("queue_runner/", queue.handle().spec().name)};
  for (std::function<void()>& one : enqueue) {
    options.enqueue.push_back([one = std::move(one)] {
      return CatchTorch("an enqueue function", [&] {
        one();
        return absl::OkStatus();
      });
    });
  }
  options.close = [&queue](bool cancel_pending) { return queue.handle().Close(cancel_pending, kCloseTimeout); };
  return std::make_unique<QueueRunner>(std::move(options));
}

}  // namespace muster
