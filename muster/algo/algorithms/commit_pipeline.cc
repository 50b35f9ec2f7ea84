#include "muster/algo/algorithms/commit_pipeline.h"

#include <cstring>
#include <utility>

#include "muster/algo/sources/traced_gradients.h"
#include "muster/base/status_macros.h"
#include "muster/optim/kernels/value_math.h"

namespace muster {

CommitPipeline::CommitPipeline(GradientSource& source, PlacementResult placement, const OptimizerSpec& server_rule,
                               const CommitSpec& spec)
    : source_(source), spec_(spec), binding_{source.variables(), std::move(placement), server_rule, {}} {
  for (size_t i = 0; i < binding_.variables.size(); ++i) binding_.values.push_back(source.value(i));
  binding_.gate = spec.gate;
  binding_.clock_limit = spec.staleness_bound ? uint64_t{1} + *spec.staleness_bound : 0;
  binding_.exchanges = spec.kind == CommitKind::kExchange;
  binding_.compensation = spec.compensation;
  binding_.adaptive = spec.adaptive;
  binding_.staleness_scale = spec.staleness_scale;
  binding_.ordered = spec.deterministic;
  if (spec.worker_rule) rule_.emplace(binding_.variables, *spec.worker_rule);
  if (needs_base()) base_ = MakeMemory();
  if (has_delta() || spec.kind == CommitKind::kSharedExchange) delta_ = MakeMemory();
  if (has_delta() && fetches_apart()) carried_ = MakeMemory();
  own_.values = centre_.values = binding_.values;
  for (size_t i = 0; spec.kind == CommitKind::kSharedExchange && i < base_.size(); ++i)
    if (trainable(i)) centre_.values[i] = base_[i];
  if (spec.momentum == 0) return;
  velocity_ = MakeMemory();
  velocities_.assign(velocity_.begin(), velocity_.end());
}

CommitPipeline::Memory CommitPipeline::MakeMemory() const {
  Memory memory(binding_.variables.size());
  for (size_t i = 0; i < memory.size(); ++i)
    if (trainable(i)) memory[i].resize(binding_.variables[i].bytes());
  return memory;
}

void CommitPipeline::Begin(StoreClient& client) {
  tables_.Begin(client);
  if (spec_.kind == CommitKind::kExchange) exchange_.emplace(client, spec_.alpha);
  new_ = true;
}

// Forgets a window that was interrupted by new values.
void CommitPipeline::StartWindow() {
  new_ = carries_ = moves_ = false;
  since_commit_ = since_fetch_ = 0;
  sum_.Clear();
  TakeBase();
}

void CommitPipeline::TakeBase() {
  if (!needs_base()) return;
  for (size_t i = 0; i < base_.size(); ++i)
    if (trainable(i)) std::memcpy(base_[i].data(), binding_.values[i].data(), base_[i].size());
}

absl::StatusOr<StepResult> CommitPipeline::Step(StoreClient& client) {
  // A new generation: the chief has loaded a checkpoint between two steps.
  if (std::exchange(generation_, client.generation()) != client.generation()) new_ = true;
  if (new_) StartWindow();
  if (exchanges() && since_commit_ == spec_.window) RETURN_IF_ERROR(Exchange(client));
  const absl::StatusOr<double> loss = ComputeGradients(client);
  if (!loss.ok()) MoveByExchange();  // the centre has already moved
  RETURN_IF_ERROR(loss.status());
  RETURN_IF_ERROR(MoveOwnValues(client));
  MoveByExchange();
  RETURN_IF_ERROR(tables_.Push());
  ++since_commit_;
  ++since_fetch_;
  if (!exchanges()) RETURN_IF_ERROR(CommitOrFetch(client));
  return StepResult{*loss, client.global_step(), staleness_};
}

absl::StatusOr<double> CommitPipeline::ComputeGradients(StoreClient& client) {
  const auto look_ahead = [this, &client](double by) {
    if (velocity_.empty()) return;
    const Track::Span applying(client.track(), Activity::kApply);  // the worker's rule
    for (size_t i = 0; i < velocity_.size(); ++i)
      if (trainable(i)) AddScaled(binding_.variables[i].dtype, binding_.values[i], velocity_[i], by);
  };
  look_ahead(spec_.momentum);
  absl::StatusOr<double> loss = TracedGradients(source_, client, gradient_tap());
  if (!loss.ok()) look_ahead(-spec_.momentum);
  return loss;
}

absl::Status CommitPipeline::MoveOwnValues(StoreClient& client) {
  if (spec_.kind == CommitKind::kGradient && (spec_.window > 1 || fetches_apart())) sum_.Add(source_);
  if (!rule_) return absl::OkStatus();
  const Track::Span applying(client.track(), Activity::kApply);
  for (size_t i = 0; i < velocity_.size(); ++i)
    if (trainable(i)) ScaleBy(binding_.variables[i].dtype, velocity_[i], spec_.momentum);
  return rule_->Apply(source_, binding_.values, velocities_, client.global_step()).status();
}

absl::Status CommitPipeline::CommitOrFetch(StoreClient& client) {
  const bool fetch_is_due = !fetches_apart() || since_fetch_ == spec_.fetch_window;
  absl::Status status;
  if (since_commit_ == spec_.window) {
    status = Commit(client, fetch_is_due);
  } else if (fetches_apart() && fetch_is_due) {
    status = Fetch(client);
  }
  // The ps may have applied it although no answer came (a gate may hold the answer beyond a Ctrl-C). Committed again
  // under another number, it would be applied twice.
  new_ = !status.ok();
  return status;
}

absl::Status CommitPipeline::FinishPending(StoreClient& client) {
  // Only once, whatever the result: the last checkpoint calls this, too. A window of replaced values is lost with them.
  if (!ending_ || std::exchange(new_, true) || generation_ != client.generation()) return absl::OkStatus();
  if (since_commit_ > 0) RETURN_IF_ERROR(exchanges() ? Exchange(client) : Commit(client, /*pulls=*/true));
  // Leaves, so that no other worker waits for this worker's turn, and so that the chief's last checkpoint waits for all
  // last commits. With a gate no round comes after this worker's last one: a worker in the next round learns that from
  // this worker's being done.
  if (spec_.deterministic && spec_.gate.kind == GateKind::kNone) RETURN_IF_ERROR(client.AwaitTurn(/*leaves=*/true));
  // A program looks at, or scores, the model that all workers have trained together.
  const bool has_own = exchanges() || (fetches_apart() && since_fetch_ > 0);
  return has_own ? client.Pull(PullWhat::kTrainable) : absl::OkStatus();
}

StorePushOptions CommitPipeline::OptionsOf(StoreClient& client) const {
  // Batch-norm statistics are each worker's own. The model is saved with the chief's.
  StorePushOptions options{.publish_buffers = client.chief_epoch() != 0, .minibatches = since_commit_};
  if (spec_.gate.kind == GateKind::kSynchronous) options.local_step = client.round();
  if (spec_.staleness_bound || (spec_.deterministic && !options.local_step)) options.clock = client.clock() + 1;
  options.scale = spec_.mean ? spec_.scale / since_commit_ : spec_.scale;
  return options;
}

// Computes θ₀ − θ if the server's rule descends.
void CommitPipeline::FindDelta(size_t i) {
  const DType dtype = binding_.variables[i].dtype;
  const double sign = spec_.kind == CommitKind::kPseudoGradient ? -1 : 1;
  SetDifference(dtype, delta_[i], binding_.values[i], base_[i], sign);
  if (carries_) AddScaled(dtype, delta_[i], carried_[i], sign);
}

absl::Status CommitPipeline::Commit(StoreClient& client, bool pulls) {
  if (spec_.deterministic) RETURN_IF_ERROR(client.AwaitTurn());
  StorePushOptions options = OptionsOf(client);
  options.pull = pulls ? PullWhat::kTrainable : PullWhat::kNothing;
  if (spec_.compensation > 0 || spec_.adaptive > 0)
    options.computed_from = [this](size_t i) { return ByteSpan(base_[i]); };
  for (size_t i = 0; has_delta() && i < delta_.size(); ++i)
    if (trainable(i)) FindDelta(i);
  const auto committed = [this](size_t i) {
    if (has_delta()) return ByteSpan(delta_[i]);
    return sum_.minibatches() > 0 ? sum_.sum(i) : source_.gradient(i);
  };
  ASSIGN_OR_RETURN(const StorePushResult pushed, client.PushPull(committed, options));
  Note(pushed);
  since_commit_ = 0;
  if (pulls) since_fetch_ = 0;
  sum_.Clear();
  carries_ = false;
  TakeBase();
  return absl::OkStatus();
}

// Keeps what hasn't been committed yet for the next commit.
absl::Status CommitPipeline::Fetch(StoreClient& client) {
  for (size_t i = 0; has_delta() && i < carried_.size(); ++i) {
    if (!trainable(i)) continue;
    const DType dtype = binding_.variables[i].dtype;
    SetDifference(dtype, delta_[i], binding_.values[i], base_[i]);
    carries_ ? AddScaled(dtype, carried_[i], delta_[i], 1) : carried_[i].swap(delta_[i]);
  }
  carries_ = has_delta();
  RETURN_IF_ERROR(client.Pull(PullWhat::kTrainable));
  since_fetch_ = 0;
  TakeBase();
  return absl::OkStatus();
}

absl::Status CommitPipeline::Exchange(StoreClient& client) {
  if (spec_.deterministic) RETURN_IF_ERROR(client.AwaitTurn());
  ASSIGN_OR_RETURN(const StorePushResult pushed,
                   spec_.kind == CommitKind::kSharedExchange
                       ? ExchangeShared(client)
                       : exchange_->Exchange(since_commit_, spec_.deterministic ? client.clock() + 1 : 0));
  Note(pushed);
  moves_ = !pushed.dropped;
  since_commit_ = 0;
  return absl::OkStatus();
}

// The commit is n (θ − θ₀) α, whose mean over the round is α times the sum of the workers' differences. If some workers
// are gone, the others move the centre by their mean as far as all did (β = n α, as equation 2.4 has it). The new
// centre isn't what this worker goes on with, so it is pulled beside its own values.
absl::StatusOr<StorePushResult> CommitPipeline::ExchangeShared(StoreClient& client) {
  for (size_t i = 0; i < delta_.size(); ++i)
    if (trainable(i)) SetDifference(binding_.variables[i].dtype, delta_[i], binding_.values[i], base_[i]);
  StorePushOptions options = OptionsOf(client);
  options.scale = spec_.alpha * spec_.gate.total_replicas;
  centre_.PullInto(client);
  absl::StatusOr<StorePushResult> pushed = client.PushPull([this](size_t i) { return ByteSpan(delta_[i]); }, options);
  own_.PullInto(client);
  return pushed;
}

void CommitPipeline::MoveByExchange() {
  if (!std::exchange(moves_, false)) return;
  if (exchange_) return exchange_->Move();
  for (size_t i = 0; i < delta_.size(); ++i)
    if (trainable(i)) AddScaled(binding_.variables[i].dtype, binding_.values[i], delta_[i], -spec_.alpha);
}

void CommitPipeline::Note(const StorePushResult& pushed) {
  staleness_ = pushed.staleness;
  if (pushed.dropped) ++dropped_;
}

}  // namespace muster
