// Data-parallel training without a ps: every worker computes gradients, all average them by all-reduce, and each
// applies the same rule to its own copy of the model. With n workers this equals one process with a batch n times as
// large (PyTorch's DistributedDataParallel). The copies are equal in every bit: they start from the chief's values and
// slots, and every rank receives the same bits of each mean.
//
// Gradients are averaged in buckets while others are still being computed (overlapped_reduction.h).
//
// Each worker keeps its copy in a store of its own, like a process that trains alone, so optimizers, checkpoints and
// counters work as in every other mode. Checkpoints are saved from and restored to the chief's copy.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "muster/algo/algorithms/algorithm.h"
#include "muster/algo/algorithms/overlapped_reduction.h"
#include "muster/collective/group/join_group.h"

namespace muster {

struct AllReduceOptions {
  // How long to wait for the other workers in a step (or, when joining, for them to come at all). A worker that has
  // died is noticed at once.
  absl::Duration patience = ReductionOptions().patience;
  // Size from which a bucket of gradients is averaged. Must be the same on every worker.
  size_t bucket_bytes = ReductionOptions().bucket_bytes;
  // May differ between workers: the result is the same.
  ReduceWhen when = ReduceWhen::kAuto;
  // Workers of this cluster on this host, for kAuto. 0: unknown; all are assumed to be here. AllReduce of the façade
  // then counts them by the workers' addresses.
  int workers_on_this_host = 0;
  // Processors that these workers may use together, for kAuto. 0: those that this process may use. AllReduce of the
  // façade then heeds MUSTER_PROCESSORS, too.
  int processors = 0;
};

class AllReduceAlgorithm final : public Algorithm {
 public:
  // Makes this worker a rank of the group (the chief is rank 0). Blocks until the others have joined.
  using Join = std::function<absl::StatusOr<std::unique_ptr<Collective>>(absl::Time deadline)>;

  // `source` must outlive it. `placement` is on a single ps, the worker's own store.
  AllReduceAlgorithm(GradientSource& source, PlacementResult placement, const OptimizerSpec& optimizer, Join join,
                     const AllReduceOptions& options = {});
  ~AllReduceAlgorithm() override;

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  bool trains_on_ps() const override { return false; }
  // Joins the group, then gives every worker the chief's values, slots and global step. FailedPrecondition: the model
  // isn't the chief's, or has tables of rows. Unavailable: not all workers came.
  [[nodiscard]] absl::Status ShareModel(StoreClient& client) override;
  void Begin(StoreClient& client) override;
  // Unavailable, naming the worker: it has died, or hasn't come to the step within the patience. Cancelled: a worker
  // has ended its training in order. FailedPrecondition: an earlier step of this worker failed in its middle, or Begin
  // hasn't been called.
  absl::StatusOr<StepResult> Step(StoreClient& client) override;
  // Makes the others' next step end with Cancelled.
  void End() override;

 private:
  absl::Time Deadline() const;
  // Both return the chief's global step.
  absl::StatusOr<int64_t> SendModel(StoreClient& client);
  absl::StatusOr<int64_t> ReceiveModel(StoreClient& client);
  [[nodiscard]] absl::Status ShareText(std::string& text);
  void ReleaseGroup();

  GradientSource& source_;
  ModelBinding binding_;
  const Join join_;
  const AllReduceOptions options_;
  std::unique_ptr<Collective> group_;
  std::unique_ptr<OverlappedReduction> reduction_;  // uses group_, so it is destroyed first
  bool out_of_step_ = false;                        // a step failed in its middle
};

}  // namespace muster
