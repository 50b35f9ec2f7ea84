// Data-parallel training without a ps: every worker computes gradients, all take part in an all-reduce of their mean,
// and each applies the same rule to its own copy of the model. It is one process with a batch as many times as large as
// there are workers (PyTorch's DistributedDataParallel). The copies are the same in every bit: they start from the
// chief's values and slots, and the mean of a gradient has the same bits everywhere.
//
// Gradients are averaged in buckets, while others are still computed (overlapped_reduction.h).
//
// Each worker keeps its copy in a store of its own, as one process alone does, so that optimizers, checkpoints and
// counters are those of every other mode; the chief's is the one that is saved, and restored from.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/algo/methods/algorithm.h"
#include "muster/algo/methods/overlapped_reduction.h"
#include "muster/collective/group/join_group.h"

namespace muster {

struct AllReduceOptions {
  // How long the others may take longer than this worker for a step (or for coming at all, with joining). One that has
  // died is noticed at once.
  absl::Duration patience = ReductionOptions().patience;
  // Gradients are averaged together until they have so many bytes. Every worker has to say the same.
  size_t bucket_bytes = ReductionOptions().bucket_bytes;
  // Every worker for itself; all give the same result.
  ReduceWhen when = ReduceWhen::kAuto;
  // For kAuto, of this cluster. 0: not known, taken for all of them; AllReduce of the façade counts them then by the
  // workers' addresses.
  int workers_on_this_host = 0;
};

class AllReduceAlgorithm final : public Algorithm {
 public:
  // Makes this worker a rank of the group, the chief being rank 0; waits for the others.
  using Join = std::function<absl::StatusOr<std::unique_ptr<Collective>>(absl::Time deadline)>;

  // `source` must outlive it. `placement` is on one ps, the worker's own.
  AllReduceAlgorithm(GradientSource& source, PlacementResult placement, const OptimizerSpec& optimizer, Join join,
                     const AllReduceOptions& options = {});
  ~AllReduceAlgorithm() override;

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  bool trains_on_ps() const override { return false; }
  // Joins the group; then all have the chief's values, slots and global step. FailedPrecondition: another model than
  // the chief's, or one with tables of rows. Unavailable: not all came.
  [[nodiscard]] absl::Status ShareModel(StoreClient& client) override;
  void Begin(StoreClient& client) override;
  // Unavailable: a worker has died, or hasn't come to the step within the patience: named. Cancelled: one has ended its
  // training in order. FailedPrecondition: an earlier step of this worker was given up in its middle; or Begin hasn't
  // been called.
  absl::StatusOr<StepResult> Step(StoreClient& client) override;
  // The others' next step ends with Cancelled.
  void End() override;

 private:
  absl::Time Deadline() const;
  // Give back the chief's global step.
  absl::StatusOr<int64_t> SendModel(StoreClient& client);
  absl::StatusOr<int64_t> ReceiveModel(StoreClient& client);
  [[nodiscard]] absl::Status ShareText(std::string& text);
  void LetGo();

  GradientSource& source_;
  ModelBinding binding_;
  const Join join_;
  const AllReduceOptions options_;
  std::unique_ptr<Collective> group_;
  std::unique_ptr<OverlappedReduction> reduction_;  // with group_, which it uses: ends first
  bool out_of_step_ = false;                        // a step has failed in its middle
};

}  // namespace muster
