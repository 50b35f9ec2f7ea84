#include "muster/sim/ledger_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/algo/algorithms/asynchronous.h"
#include "muster/algo/algorithms/bounded_staleness.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr int kFrozen = 2;
constexpr int kBuffer = 3;

}  // namespace

std::vector<VariableSpec> LedgerVariables(int64_t rows, int64_t row) {
  return {{.name = "always", .dtype = DType::kFloat64, .shape = {rows, row}},
          {.name = "often", .dtype = DType::kFloat64, .shape = {rows, row}},
          {.name = "frozen", .dtype = DType::kFloat64, .shape = {3}, .kind = VariableKind::kFrozen},
          {.name = "buffer", .dtype = DType::kFloat64, .shape = {4}, .kind = VariableKind::kBuffer}};
}

LedgerSource::LedgerSource(Options options)
    : options_(std::move(options)),
      variables_(LedgerVariables(options_.rows, options_.ledger->row())),
      own_(options_.placement.load_bytes.size()) {
  for (const VariableSpec& variable : variables_) values_.emplace_back(variable.elements());
  gradients_ = values_;
  std::fill(values_[kFrozen].begin(), values_[kFrozen].end(), 42);
}

void LedgerSource::SetGradients(double value) {
  for (int variable = 0; variable < PushLedger::kVariables; ++variable)
    for (size_t at = options_.ledger->Element(minibatch_); at < gradients_[variable].size();
         at += options_.ledger->row())
      gradients_[variable][at] = value;
}

absl::StatusOr<double> LedgerSource::ComputeGradients() {
  if (full()) StartWindow();  // its push failed
  CheckPulled();
  if (steps_++ > 0) SetGradients(0);
  SimulatedThread& thread = *options_.thread;
  const uint64_t drawn = HashNumbers(thread.process().world().seed(), thread.process().number(), steps_);
  const absl::Duration compute = options_.compute * (static_cast<double>(drawn >> 40) / static_cast<double>(1 << 24));
  thread.Compute(compute);
  const auto minibatch = options_.ledger->Begin(options_.worker);
  if (!minibatch) return absl::CancelledError("the ledger has no room for more minibatches of this worker");
  minibatch_ = *minibatch;
  push_.push_back(minibatch_);
  if (full()) Send();
  SetGradients(-static_cast<double>(options_.ledger->unit() * options_.ledger->Digit(minibatch_)));
  std::fill(values_[kBuffer].begin(), values_[kBuffer].end(), minibatch_.number);
  // Imitates the rest of the backward pass, if gradients are sent meanwhile.
  for (int variable = PushLedger::kVariables; ready_ && variable-- > 0;) {
    if (PushLedger::TakesPart(minibatch_, variable)) ready_(variable);
    thread.Compute(compute);
  }
  return 1.0;
}

ByteSpan LedgerSource::gradient(size_t i) {
  if (i >= PushLedger::kVariables || !PushLedger::TakesPart(minibatch_, static_cast<int>(i))) return {};
  return AsBytes(gradients_[i].data(), gradients_[i].size());
}

void LedgerSource::Send() {
  sent_at_ = options_.ledger->Generations();
  options_.ledger->Send(options_.life, push_);
}

void LedgerSource::OnAcknowledged() {
  for (const PushLedger::Minibatch& minibatch : push_) {
    if (minibatch.generations != sent_at_)
      options_.violated(absl::StrCat("minibatch ", minibatch.number, " of worker ", options_.worker,
                                     " was computed from values that had been replaced when it was pushed"));
    // With a gate the push may have come too late on the other ps.
    for (size_t ps = 0; ps < (options_.ledger->averaged() ? 1 : own_.size()); ++ps) {
      const uint64_t generation = options_.ledger->server(ps).generation;
      if (own_[ps].generation != generation) own_[ps] = {.generation = generation};
      if (minibatch.generations[ps] != generation) continue;
      for (int variable = 0; variable < PushLedger::kVariables; ++variable)
        if (PushLedger::TakesPart(minibatch, variable))
          own_[ps].rows[variable][options_.ledger->Element(minibatch)] |= options_.ledger->Digit(minibatch);
    }
  }
  StartWindow();
}

void LedgerSource::CheckPulled() {
  for (const PlacedSlice& slice : options_.placement.slices)
    if (slice.variable < PushLedger::kVariables) CheckSlice(slice);
  for (const double value : values_[kFrozen])
    if (value != 42) options_.violated(absl::StrCat("the frozen variable was pulled as ", value));
}

void LedgerSource::CheckSlice(const PlacedSlice& slice) {
  const ByteSpan bytes =
      ByteSpan(value(slice.variable)).subspan(slice.offset * sizeof(double), static_cast<size_t>(slice.bytes));
  const std::string where = absl::StrCat("worker ", options_.worker, " pulled from ps ", slice.ps, ": ");
  if (const auto wrong = options_.ledger->ReadRows(bytes, read_)) return options_.violated(where + *wrong);
  for (const PushLedger::Minibatch& minibatch : push_)
    for (const PushLedger::Row& row : read_) {
      if (!PushLedger::TakesPart(minibatch, slice.variable)) continue;
      const bool there = (row[options_.ledger->Element(minibatch)] & options_.ledger->Digit(minibatch)) != 0;
      if (there != options_.moves)
        return options_.violated(absl::StrCat(
            "worker ", options_.worker, " has minibatch ", minibatch.number,
            there ? " in its values, which nobody has pushed" : " of its own not in its values, within the window"));
    }
  const Own& own = own_[slice.ps];
  if (own.generation != options_.ledger->server(slice.ps).generation) return;
  for (const PushLedger::Row& row : read_)
    for (int element = 0; element < options_.ledger->row(); ++element)
      if ((own.rows[slice.variable][element] & ~row[element]) != 0)
        return options_.violated(where + "a push of its own that was acknowledged is missing");
}

LedgerAlgorithm::LedgerAlgorithm(LedgerSource& source, PushLedger& ledger, PlacementResult placement,
                                 const Schedule& schedule)
    : source_(source), ledger_(ledger) {
  switch (schedule.work) {
    case ScheduledWork::kAsynchronous:
      inner_ = std::make_unique<AsynchronousAlgorithm>(source, std::move(placement), LedgerRule());
      return;
    case ScheduledWork::kWindows:
    case ScheduledWork::kOrdered:
      inner_ = MakePipeline(std::move(placement), schedule);
      return;
    case ScheduledWork::kBoundedStaleness:
      if (schedule.window > 1) {
        inner_ = MakePipeline(std::move(placement), schedule);
        return;
      }
      inner_ = std::make_unique<BoundedStalenessAlgorithm>(source, std::move(placement), LedgerRule(),
                                                           schedule.staleness_bound);
      return;
    case ScheduledWork::kSynchronous: {
      if (schedule.in_turn) {
        inner_ = MakePipeline(std::move(placement), schedule);
        return;
      }
      const SynchronousOptions options{.replicas_to_aggregate = static_cast<uint32_t>(schedule.replicas),
                                       .total_replicas = static_cast<uint32_t>(schedule.num_workers),
                                       .elastic = schedule.elastic};
      auto synchronous = std::make_unique<SynchronousAlgorithm>(source, std::move(placement), LedgerRule(), options);
      synchronous_ = synchronous.get();
      inner_ = std::move(synchronous);
    }
  }
}

// A difference contains its minibatches like a sum of gradients does, but with the opposite sign.
std::unique_ptr<Algorithm> LedgerAlgorithm::MakePipeline(PlacementResult placement, const Schedule& schedule) {
  CommitSpec spec{.window = schedule.window,
                  .mean = schedule.scale == ScheduledScale::kMean,
                  .deterministic = schedule.work == ScheduledWork::kOrdered || schedule.in_turn};
  if (schedule.scale == ScheduledScale::kStaleness) spec.staleness_scale = StalenessScale::kInverseAfterThis;
  if (schedule.work == ScheduledWork::kBoundedStaleness) spec.staleness_bound = schedule.staleness_bound;
  const auto workers = static_cast<uint32_t>(schedule.num_workers);
  if (schedule.in_turn) spec.gate = {GateKind::kSynchronous, workers, workers, /*elastic=*/false};
  RuleSpec rule = LedgerRule();
  if (schedule.differences) {
    spec.kind = CommitKind::kDelta;
    spec.worker_rule = LedgerRule();
    rule = {.kind = RuleKind::kAdd};
  }
  auto pipeline = std::make_unique<CommitPipeline>(source_, std::move(placement), rule, spec);
  pipeline_ = pipeline.get();
  return pipeline;
}

void LedgerAlgorithm::Begin(StoreClient& client) {
  source_.StartWindow();
  inner_->Begin(client);
}

absl::StatusOr<StepResult> LedgerAlgorithm::Step(StoreClient& client) {
  const int64_t before = dropped();
  const absl::StatusOr<StepResult> result = inner_->Step(client);
  // The pipeline gives up a window whose commit has failed, because the ps may have it all the same.
  if (!result.ok() && pipeline_ != nullptr && source_.full()) source_.StartWindow();
  if (!result.ok()) return result;
  if (dropped() > before) {
    source_.StartWindow();
  } else if (source_.full()) {
    Acknowledge(result->global_step);
  }
  return result;
}

int64_t LedgerAlgorithm::dropped() const {
  if (pipeline_ != nullptr) return pipeline_->dropped();
  return synchronous_ != nullptr ? synchronous_->dropped() : 0;
}

void LedgerAlgorithm::End() {
  ending_ = true;
  inner_->End();
}

// The last window is committed however few minibatches it has, and only once, whatever the result.
absl::Status LedgerAlgorithm::FinishPending(StoreClient& client) {
  const bool commits = pipeline_ != nullptr && ending_ && !source_.push().empty();
  if (commits) source_.Send();
  absl::Status finished = inner_->FinishPending(client);
  if (commits && finished.ok()) Acknowledge(client.global_step());
  if (commits) source_.StartWindow();
  return finished;
}

void LedgerAlgorithm::Acknowledge(int64_t global_step) {
  ledger_.Acknowledge(source_.push(), global_step);
  source_.OnAcknowledged();
}

}  // namespace muster
