// The model of a simulated worker. Its gradients are the minibatches of a PushLedger (with SGD of rate 1 they add up
// exactly), and before each one it checks the values it has pulled. Besides the trainable variables it has a frozen one
// and a buffer. LedgerAlgorithm trains it as the schedule says and tells the ledger what was acknowledged.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/algo/algorithms/algorithm.h"
#include "muster/algo/algorithms/commit_pipeline.h"
#include "muster/algo/algorithms/synchronous.h"
#include "muster/sim/fault_schedule.h"
#include "muster/sim/push_ledger.h"
#include "muster/transport/simulated/simulated_process.h"

namespace muster {

std::vector<VariableSpec> LedgerVariables(int64_t rows, int64_t row);
inline RuleSpec LedgerRule() { return {.kind = RuleKind::kSgd, .learning_rate = 1}; }

class LedgerSource final : public GradientSource {
 public:
  struct Options {
    int worker = 0;
    uint64_t life = 0;  // incarnation
    int64_t rows = 1;
    absl::Duration compute;  // of a minibatch, at most
    uint32_t window = 1;     // minibatches per push
    bool moves = false;      // the worker's own rule adds each minibatch to its values at once
    PlacementResult placement;
    SimulatedThread* thread = nullptr;
    PushLedger* ledger = nullptr;
    std::function<void(const std::string&)> violated;
  };
  explicit LedgerSource(Options options);

  const std::vector<VariableSpec>& variables() const override { return variables_; }
  MutableByteSpan value(size_t i) override { return AsMutableBytes(values_[i].data(), values_[i].size()); }
  absl::StatusOr<double> ComputeGradients() override;
  ByteSpan gradient(size_t i) override;
  void AnnounceGradients(GradientReady ready) override { ready_ = std::move(ready); }

  // Returns the window's minibatches so far.
  const PushLedger::Push& push() const { return push_; }
  bool full() const { return push_.size() == options_.window; }
  // Forgets the minibatches of the window.
  void StartWindow() { push_.clear(); }
  // Tells the ledger that the window's push is on its way. ComputeGradients calls it when the window is full.
  void Send();
  // Says that every ps has the window's push. A new window begins.
  void OnAcknowledged();

 private:
  void CheckPulled();
  void CheckSlice(const PlacedSlice& slice);
  void SetGradients(double value);

  const Options options_;
  const std::vector<VariableSpec> variables_;
  std::vector<std::vector<double>> values_;
  std::vector<std::vector<double>> gradients_;
  PushLedger::Minibatch minibatch_;  // the last one
  PushLedger::Push push_;
  std::vector<uint64_t> sent_at_;  // the generation of each ps at that time
  int64_t steps_ = 0;
  GradientReady ready_;
  // What the acknowledged pushes of this process have added to each ps, as long as the ps keeps its model.
  struct Own {
    uint64_t generation = 0;
    std::array<PushLedger::Row, PushLedger::kVariables> rows{};
  };
  std::vector<Own> own_;
  std::vector<PushLedger::Row> read_;
};

class LedgerAlgorithm final : public Algorithm {
 public:
  // All must outlive it.
  LedgerAlgorithm(LedgerSource& source, PushLedger& ledger, PlacementResult placement, const Schedule& schedule);

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return inner_->binding(); }
  uint32_t window() const override { return inner_->window(); }
  void Begin(StoreClient& client) override;
  absl::StatusOr<StepResult> Step(StoreClient& client) override;
  void End() override;
  [[nodiscard]] absl::Status FinishPending(StoreClient& client) override;

 private:
  std::unique_ptr<Algorithm> MakePipeline(PlacementResult placement, const Schedule& schedule);
  void Acknowledge(int64_t global_step);
  // Returns how many gradients came too late for their round so far.
  int64_t dropped() const;

  LedgerSource& source_;
  PushLedger& ledger_;
  SynchronousAlgorithm* synchronous_ = nullptr;  // set if inner_ is one
  CommitPipeline* pipeline_ = nullptr;           // set if inner_ is one
  std::unique_ptr<Algorithm> inner_;
  bool ending_ = false;
};

}  // namespace muster
