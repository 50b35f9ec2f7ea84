#include "muster/algo/algorithms/pipelined.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "muster/algo/sources/traced_gradients.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// A cache line, which also suits vector instructions.
constexpr size_t kAlignment = 64;

size_t Padded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

PipelinedAlgorithm::PipelinedAlgorithm(GradientSource& source, PlacementResult placement,
                                       const OptimizerSpec& optimizer, const PipelinedOptions& options)
    : source_(source), options_(options), binding_{source.variables(), std::move(placement), optimizer, {}} {
  for (size_t i = 0; i < binding_.variables.size(); ++i) {
    binding_.values.push_back(source.value(i));
    has_tables_ = has_tables_ || binding_.variables[i].kind == VariableKind::kRows;
  }
  binding_.through_ps = true;
  gradients_.resize(binding_.variables.size());
  copies_.resize(binding_.variables.size());
}

PipelinedAlgorithm::~PipelinedAlgorithm() {
  if (pending_) AwaitPush().IgnoreError();
}

void PipelinedAlgorithm::MakeMemory() {
  const std::vector<VariableSpec>& variables = binding_.variables;
  moved_.assign(variables.size(), false);
  buffers_.resize(variables.size());
  size_t bytes = kAlignment;
  for (const VariableSpec& variable : variables)
    if (variable.kind == VariableKind::kTrainable) bytes += Padded(variable.bytes());
  for (int set = 0; set < 2; ++set) {
    memory_[set] = std::make_shared<std::vector<std::byte>>(bytes);
    sets_[set].values = binding_.values;
    const auto begin = reinterpret_cast<uintptr_t>(memory_[set]->data());
    std::byte* next = memory_[set]->data() + (Padded(begin) - begin);
    for (size_t i = 0; i < variables.size(); ++i) {
      if (variables[i].kind == VariableKind::kBuffer) {
        buffers_[i].resize(variables[i].bytes());
        sets_[set].values[i] = buffers_[i];
      }
      if (variables[i].kind != VariableKind::kTrainable) continue;
      sets_[set].values[i] = {next, static_cast<size_t>(variables[i].bytes())};
      next += Padded(variables[i].bytes());
    }
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].kind != VariableKind::kTrainable) continue;
    const MutableByteSpan memory = sets_[0].values[i];
    std::copy(binding_.values[i].begin(), binding_.values[i].end(), memory.begin());
    moved_[i] = source_.UseMemory(i, memory, memory_[0]);
    if (moved_[i]) binding_.values[i] = memory;
  }
}

void PipelinedAlgorithm::ComputeWith(int set) {
  compute_ = set;
  for (size_t i = 0; i < binding_.variables.size(); ++i) {
    if (binding_.variables[i].kind != VariableKind::kTrainable) continue;
    const MutableByteSpan memory = sets_[set].values[i];
    if (moved_[i]) {
      moved_[i] = source_.UseMemory(i, memory, memory_[set]);
      binding_.values[i] = moved_[i] ? memory : source_.value(i);
    }
    if (!moved_[i]) std::memcpy(source_.value(i).data(), memory.data(), memory.size());
  }
}

void PipelinedAlgorithm::Begin(StoreClient& client) {
  if (pending_) AwaitPush().IgnoreError();
  if (memory_[0] == nullptr) MakeMemory();
  ValueSet{binding_.values, {}}.PullInto(client);
  tables_.Begin(client);
  parts_.emplace(client);
  if (options_.thread && !has_tables_ && thread_ == nullptr) thread_ = std::make_unique<BackgroundThread>();
}

void PipelinedAlgorithm::KeepGradients() {
  const bool kept = source_.KeepGradients();
  for (size_t i = 0; i < gradients_.size(); ++i) {
    gradients_[i] = source_.gradient(i);
    if (kept) continue;
    copies_[i].assign(gradients_[i].begin(), gradients_[i].end());
    gradients_[i] = copies_[i];
  }
}

absl::StatusOr<StorePushResult> PipelinedAlgorithm::Push(StoreClient& client) {
  const auto gradient = [this](size_t variable) { return gradients_[variable]; };
  // Usually runs on another thread than the recorded one, which records how long it waits for this.
  if (!parts_->Possible()) return client.PushPull(gradient, {.publish_buffers = publish_buffers_, .recorded = false});
  parts_->Begin();
  return parts_->Finish(gradient, publish_buffers_);
}

void PipelinedAlgorithm::StartPush(StoreClient& client, bool in_step) {
  pending_ = true;
  if (thread_ == nullptr || in_step) {
    pushed_ = Push(client);
    return;
  }
  {
    const MutexLock lock(mutex_);
    running_ = true;
  }
  thread_->Run([this, &client] {
    pushed_ = Push(client);
    const MutexLock lock(mutex_);
    running_ = false;
    over_.NotifyAll();
  });
}

absl::StatusOr<StorePushResult> PipelinedAlgorithm::AwaitPush() {
  {
    const MutexLock lock(mutex_);
    while (running_) over_.Wait(mutex_);
  }
  pending_ = false;
  return std::exchange(pushed_, StorePushResult{});
}

absl::StatusOr<StepResult> PipelinedAlgorithm::Step(StoreClient& client) {
  ASSIGN_OR_RETURN(const double loss, TracedGradients(source_, client, gradient_tap()));
  StepResult result{.loss = loss};
  const int computed_from = compute_;
  const bool newer = pending_;
  if (newer) {
    const Track::Span wait(client.track(), Activity::kWait);
    ASSIGN_OR_RETURN(const StorePushResult pushed, AwaitPush());
    result.staleness = pushed.staleness;
    result.global_step = pushed.global_step + 1;
    sets_[1 - compute_].NotePulled(client);
  } else {
    result.global_step = client.NextNumbers().global_step + 1;
    sets_[compute_].NotePulled(client);
  }
  RETURN_IF_ERROR(tables_.Push());
  KeepGradients();
  publish_buffers_ = client.chief_epoch() != 0;
  for (size_t i = 0; i < buffers_.size() && publish_buffers_; ++i)
    if (!buffers_[i].empty()) std::memcpy(buffers_[i].data(), source_.value(i).data(), buffers_[i].size());
  if (newer) ComputeWith(1 - compute_);
  sets_[computed_from].NoteComputedFrom(client);
  sets_[1 - compute_].PullInto(client);
  // Someone asked the chief to load a checkpoint. The answer to this push repeats the request, and then the session can
  // load.
  const bool in_step = !client.TakeLoadRequest().empty();
  // Whatever begins from now on belongs to a later push.
  static_cast<void>(client.work().Seal());
  StartPush(client, in_step);
  if (in_step) RETURN_IF_ERROR(FinishPending(client));
  return result;
}

absl::Status PipelinedAlgorithm::FinishPending(StoreClient& client) {
  if (!pending_) return absl::OkStatus();
  const absl::Status pushed = AwaitPush().status();
  if (pushed.ok()) {
    sets_[1 - compute_].NotePulled(client);
    ComputeWith(1 - compute_);
  }
  ValueSet{binding_.values, {}}.PullInto(client);
  return pushed;
}

}  // namespace muster
