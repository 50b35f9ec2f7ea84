// A worker's own variables and their global copies on the ps, which are exchanged only when the program says so: it
// trains its own variables for as many minibatches as it likes, then pushes the difference (or gradients it has summed
// up) and assigns the global values to its own. (The "local-then-global variables" of tmulc18's
// Distributed-TensorFlow-Guide, where local ones are in the worker's LOCAL_VARIABLES collection.) DOWNPOUR, AGN and
// similar algorithms are built from this.
//
// One step of the session is one run of the program's function; it may push and pull any number of times, or not at
// all. Each push is applied exactly once (store/client/store_client.h). Used by the training thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "muster/algo/algorithms/algorithm.h"
#include "muster/algo/sources/gradient_sum.h"

namespace muster {

struct LocalPushOptions {
  // Factor of what is pushed: 1 / steps turns the difference of some steps into their mean.
  double scale = 1;
  // How many minibatches this one update stands for. 0: it isn't counted in global_step.
  uint32_t minibatches = 1;
};

class LocalVariablesAlgorithm final : public Algorithm {
 public:
  // The memory of `source`, which must outlive this, holds the local variables. The ps apply `optimizer` to what is
  // pushed. `run` is one run of the program and returns its loss; only it may call the functions below.
  LocalVariablesAlgorithm(GradientSource& source, PlacementResult placement, const OptimizerSpec& optimizer,
                          std::function<absl::StatusOr<double>()> run);

  // Errors of the functions below: StoreClient's, and FailedPrecondition outside a run of the session.

  // Pulls the current values of the ps to the global copies. Blocks for one round trip.
  [[nodiscard]] absl::Status PullGlobal();

  // Copies the global copies, as this worker's last pull or push left them, to the local variables; sends nothing. The
  // first time, and after a recovery, also copies buffers and frozen variables (later a batch norm's statistics are the
  // worker's own). The next PushDelta pushes the difference from these values.
  [[nodiscard]] absl::Status AssignGlobalToLocal();

  // Computes global ← global + scale · (local − what it was at the last AssignGlobalToLocal or PushDelta). The same
  // round trip returns the new global values; the local ones stay. FailedPrecondition: never assigned yet, or a rule
  // other than add.
  absl::StatusOr<StorePushResult> PushDelta(const LocalPushOptions& options = {});

  // Adds the source's current gradients to what PushGradients will push. A run that fails forgets the sum.
  [[nodiscard]] absl::Status AccumulateGradients();

  // Pushes scale · the accumulated gradients (if there are none, the source's current ones), to which the ps apply
  // their rule. The new global values come back as with PushDelta. Hooks that look at gradients see what was pushed.
  // InvalidArgument: the rule add with a positive scale, which would climb.
  absl::StatusOr<StorePushResult> PushGradients(const LocalPushOptions& options = {});

  // Variable i as the last pull or push returned it; empty before the session has started, and for tables of rows.
  ByteSpan global(size_t i) const { return i < global_.size() ? ByteSpan(global_[i]) : ByteSpan(); }

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  // From now on the client pulls into memory of its own: the local variables belong to the program.
  void Begin(StoreClient& client) override;
  // If the run didn't push, asks ps 0 for the global step, as a run of TensorFlow's session does for its hooks.
  absl::StatusOr<StepResult> Step(StoreClient& client) override;

 private:
  using Memory = std::vector<std::vector<std::byte>>;  // one entry per variable

  [[nodiscard]] absl::Status CheckInRun(const char* what) const;
  bool trainable(size_t i) const { return binding_.variables[i].kind == VariableKind::kTrainable; }
  absl::StatusOr<StorePushResult> Push(absl::FunctionRef<ByteSpan(size_t)> pushed, uint32_t minibatches);

  GradientSource& source_;
  ModelBinding binding_;
  const std::function<absl::StatusOr<double>()> run_;
  StoreClient* client_ = nullptr;  // null outside a run
  Memory global_;
  Memory base_;  // the local values after the last assignment or PushDelta; empty before
  GradientSum sums_;
  bool assign_all_ = true;
  StorePushResult pushed_;  // result of this run's last push
  bool has_pushed_ = false;
};

}  // namespace muster
