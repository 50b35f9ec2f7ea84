// A worker's own variables and their global copies on the ps, which meet only when the program says so: it trains its
// own as it likes, for as many minibatches as it likes, then pushes the difference (or gradients it has summed up) and
// assigns the global ones to its own. (The "local-then-global variables" of tmulc18's Distributed-TensorFlow-Guide,
// where local ones are in the worker's LOCAL_VARIABLES collection.) What DOWNPOUR, AGN and their kind are made of.
//
// One step of the session is one run of the program's function; it may push and pull any number of times, or not at
// all. Each push is applied exactly once (store/store_client.h). Used by the training thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "muster/algo/methods/algorithm.h"
#include "muster/algo/sources/gradient_sum.h"

namespace muster {

struct LocalPushOptions {
  // Times what is pushed: 1 / steps makes the difference of some steps their mean.
  double scale = 1;
  // How many minibatches the push stands for, beside the one update that it is. 0: it isn't counted in global_step.
  uint32_t minibatches = 1;
};

class LocalVariablesAlgorithm final : public Algorithm {
 public:
  // The memory of `source`, which must outlive this, is the local variables; the ps apply `optimizer` to what is
  // pushed. `run` is one run of the program and gives its loss: what follows may be called from there only.
  LocalVariablesAlgorithm(GradientSource& source, PlacementResult placement, const OptimizerSpec& optimizer,
                          std::function<absl::StatusOr<double>()> run);

  // Errors of what follows: StoreClient's, and FailedPrecondition: not in a run of the session.

  // global → local, of what the ps hold now. Blocks for one round trip.
  [[nodiscard]] absl::Status PullGlobal();

  // global → local, of what the last pull or push of this worker brought; nothing is sent. The first time, and after
  // a recovery, buffers and frozen variables too (a batch norm's statistics are a worker's own after that). With it
  // begins what the next PushDelta pushes.
  [[nodiscard]] absl::Status AssignGlobalToLocal();

  // global ← global + scale · (local − what it was at the last AssignGlobalToLocal or PushDelta), and the new global
  // values come back in the same round trip; the local ones stay. FailedPrecondition: never assigned yet; a rule other
  // than add.
  absl::StatusOr<StorePushResult> PushDelta(const LocalPushOptions& options = {});

  // Adds the gradients that the source has now to what PushGradients will push. A run that fails forgets the sum.
  [[nodiscard]] absl::Status AccumulateGradients();

  // scale · the accumulated gradients (none: those that the source has now), to which the ps apply their rule; the new
  // global values come back as with PushDelta; hooks that look at gradients see what was pushed. InvalidArgument: the
  // rule add and a positive scale, which climbs.
  absl::StatusOr<StorePushResult> PushGradients(const LocalPushOptions& options = {});

  // Variable i as the last pull or push brought it; empty before the session has started, and for tables of rows.
  ByteSpan global(size_t i) const { return i < global_.size() ? ByteSpan(global_[i]) : ByteSpan(); }

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  // From now on the client pulls into memory of its own: the local variables are the program's.
  void Begin(StoreClient& client) override;
  // Without a push it asks ps 0 for the global step, as a run of TensorFlow's session does for its hooks.
  absl::StatusOr<StepResult> Step(StoreClient& client) override;

 private:
  using Memory = std::vector<std::vector<std::byte>>;  // one a variable

  [[nodiscard]] absl::Status CheckInRun(const char* what) const;
  bool trainable(size_t i) const { return binding_.variables[i].kind == VariableKind::kTrainable; }
  absl::StatusOr<StorePushResult> Push(absl::FunctionRef<ByteSpan(size_t)> pushed, uint32_t minibatches);

  GradientSource& source_;
  ModelBinding binding_;
  const std::function<absl::StatusOr<double>()> run_;
  StoreClient* client_ = nullptr;  // in a run
  Memory global_;
  Memory base_;  // local as the last assignment or PushDelta left it; empty before
  GradientSum sums_;
  bool assign_all_ = true;
  StorePushResult pushed_;  // the last of this run
  bool has_pushed_ = false;
};

}  // namespace muster
