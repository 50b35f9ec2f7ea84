#include "muster/algo/algorithms/overlapped_reduction.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "muster/base/clock.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// Returns the number 1 of a type, as bytes.
ByteSpan One(DType dtype) {
  static constexpr float kFloat = 1;
  static constexpr double kDouble = 1;
  static constexpr uint16_t kFloat16 = 0x3c00, kBFloat16 = 0x3f80;
  switch (dtype) {
    case DType::kFloat64:
      return AsBytes(&kDouble, 1);
    case DType::kFloat16:
      return AsBytes(&kFloat16, 1);
    case DType::kBFloat16:
      return AsBytes(&kBFloat16, 1);
    default:
      return AsBytes(&kFloat, 1);
  }
}

}  // namespace

OverlappedReduction::OverlappedReduction(GradientSource& source, Collective& group, const ReductionOptions& options)
    : source_(source),
      group_(group),
      options_(options),
      variables_(source.variables()),
      places_(variables_.size()),
      taken_(variables_.size()),
      own_memory_(variables_.size()) {
  if (options_.when == ReduceWhen::kBeside) thread_ = std::make_unique<BackgroundThread>();
}

void OverlappedReduction::Begin(Track* track) {
  track_ = track;
  announced_.clear();
  taken_.assign(taken_.size(), false);
  for (Bucket& bucket : buckets_) bucket.missing = bucket.plan.variables.size();
  next_ = 0;
  status_ = absl::OkStatus();
}

void OverlappedReduction::Ready(size_t variable) {
  if (buckets_.empty()) return announced_.push_back(static_cast<uint32_t>(variable));
  if (options_.when == ReduceWhen::kAfter) return;
  Take(variable);
  ReduceComplete(thread_ != nullptr);
}

absl::Status OverlappedReduction::AgreeOnBuckets() {
  std::vector<uint32_t> order = CompleteOrder(variables_, announced_);
  RETURN_IF_ERROR(group_.Broadcast({AsMutableBytes(order.data(), order.size())}, /*root=*/0,
                                   RealClock().Now() + options_.patience));
  if (!IsCompleteOrder(variables_, order))
    return absl::DataLossError("the chief has sent an order of gradients that isn't one of this model's variables");
  for (GradientBucket& plan : PlanBuckets(variables_, order, options_.bucket_bytes)) {
    for (size_t i = 0; i < plan.variables.size(); ++i) places_[plan.variables[i]] = {buckets_.size(), i};
    Bucket& bucket = buckets_.emplace_back();
    bucket.missing = plan.variables.size();
    bucket.presence.resize(plan.variables.size() * DTypeSize(plan.dtype));
    bucket.in.resize(plan.variables.size() + 1);
    bucket.out.resize(plan.variables.size() + 1);
    bucket.in[0] = bucket.presence;
    bucket.out[0] = bucket.presence;
    bucket.plan = std::move(plan);
  }
  return absl::OkStatus();
}

void OverlappedReduction::Take(size_t variable) {
  if (variables_[variable].kind != VariableKind::kTrainable || taken_[variable]) return;
  taken_[variable] = true;
  const auto [at, index] = places_[variable];
  Bucket& bucket = buckets_[at];
  const ByteSpan gradient = source_.gradient(variable);
  const ByteSpan one = One(bucket.plan.dtype);
  const auto presence = bucket.presence.begin() + static_cast<std::ptrdiff_t>(index * one.size());
  if (gradient.empty()) {
    std::fill_n(presence, one.size(), std::byte{});
  } else {
    std::copy(one.begin(), one.end(), presence);
  }
  MutableByteSpan mean = source_.OverwritableGradient(variable);
  if (mean.empty() || gradient.empty()) {
    own_memory_[variable].resize(static_cast<size_t>(variables_[variable].bytes()));
    mean = own_memory_[variable];
    if (gradient.empty()) std::memset(mean.data(), 0, mean.size());
  }
  bucket.in[index + 1] = gradient.empty() ? ByteSpan(mean) : gradient;
  bucket.out[index + 1] = mean;
  --bucket.missing;
}

void OverlappedReduction::ReduceComplete(bool beside) {
  for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) {
    Bucket& bucket = buckets_[next_];
    if (!beside) {
      const Track::Span reduce(track_, Activity::kReduce);
      Reduce(bucket);
      continue;
    }
    {
      const MutexLock lock(mutex_);
      ++running_;
    }
    thread_->Run([this, &bucket] {
      Reduce(bucket);
      const MutexLock lock(mutex_);
      if (--running_ == 0) over_.NotifyAll();
    });
  }
}

void OverlappedReduction::Reduce(Bucket& bucket) {
  if (!status_.ok()) return;
  status_ = group_.AllReduce(bucket.in, bucket.out, bucket.plan.dtype, Reduction::kMean,
                             RealClock().Now() + options_.patience);
}

void OverlappedReduction::AwaitThread() {
  const MutexLock lock(mutex_);
  while (running_ > 0) over_.Wait(mutex_);
}

absl::Status OverlappedReduction::Finish() {
  if (buckets_.empty()) RETURN_IF_ERROR(AgreeOnBuckets());
  for (size_t i = 0; i < variables_.size(); ++i) Take(i);
  {
    const Track::Span reduce(track_, Activity::kReduce);
    AwaitThread();
  }
  // The training thread is free now, so it does the rest itself and no thread has to be woken.
  ReduceComplete(/*beside=*/false);
  return status_;
}

bool OverlappedReduction::Abandon() {
  AwaitThread();
  return next_ == 0;
}

ByteSpan OverlappedReduction::mean(size_t variable) const {
  if (variables_[variable].kind != VariableKind::kTrainable) return {};
  const auto [at, index] = places_[variable];
  const Bucket& bucket = buckets_[at];
  const size_t element = DTypeSize(bucket.plan.dtype);
  const auto begin = bucket.presence.begin() + static_cast<std::ptrdiff_t>(index * element);
  const bool anybody = std::any_of(begin, begin + static_cast<std::ptrdiff_t>(element),
                                   [](std::byte byte) { return byte != std::byte{}; });
  return anybody ? ByteSpan(bucket.out[index + 1]) : ByteSpan();
}

}  // namespace muster
