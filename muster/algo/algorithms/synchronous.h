// Synchronous training with backup workers: every worker computes gradients for the same round, the mean of the first N
// of M is applied (by the ps, or on the ps's own host by the workers, each a share), and all go on with the result
// (TensorFlow's SyncReplicasOptimizer; Chen et al. 2016). A worker that is too late loses its minibatch and goes on
// with the next round. With N = M this equals one process with a batch M times as large.
#pragma once

#include "muster/algo/algorithms/algorithm.h"

namespace muster {

struct SynchronousOptions {
  uint32_t replicas_to_aggregate = 1;  // N: gradients per update
  uint32_t total_replicas = 1;         // M: workers, including the chief
  bool elastic = true;                 // N shrinks with the number of live workers: no worker waits for a dead one
};

class SynchronousAlgorithm final : public Algorithm {
 public:
  // `source` must outlive it. Initialising the ps refuses options that make no sense.
  SynchronousAlgorithm(GradientSource& source, PlacementResult placement, const OptimizerSpec& optimizer,
                       const SynchronousOptions& options);

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  // If the client offers the store's own memory, the source trains in it.
  void Begin(StoreClient& client) override;
  // Blocks until the round is complete. If the minibatch came too late, the result has the global step that the others
  // made.
  absl::StatusOr<StepResult> Step(StoreClient& client) override;

  // Number of this worker's minibatches that came too late for their round.
  int64_t dropped() const { return dropped_; }

 private:
  GradientSource& source_;
  ModelBinding binding_;
  int64_t dropped_ = 0;
};

}  // namespace muster
