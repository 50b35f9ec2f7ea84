// Synchronous training with backup workers: every worker computes gradients for the same round, the ps (on their
// own host the workers, each a share) apply the mean of the first N of M, and all go on with the result (TensorFlow's
// SyncReplicasOptimizer; Chen et al. 2016). Who is too late loses its minibatch and goes on with the next round. With N
// = M it is one process with a batch M times as large.
#pragma once

#include "muster/algo/methods/algorithm.h"

namespace muster {

struct SynchronousOptions {
  uint32_t replicas_to_aggregate = 1;  // N: gradients that make an update
  uint32_t total_replicas = 1;         // M: workers, the chief among them
  bool elastic = true;                 // N shrinks with the number of workers that are there: nobody waits for the dead
};

class SynchronousAlgorithm final : public Algorithm {
 public:
  // `source` must outlive it. What the options can't mean is refused when the ps are initialised.
  SynchronousAlgorithm(GradientSource& source, PlacementResult placement, const OptimizerSpec& optimizer,
                       const SynchronousOptions& options);

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  // Where the client offers the store's own memory, the source trains in it.
  void Begin(StoreClient& client) override;
  // Waits for the round. A minibatch that came too late shows by a global step that others have made.
  absl::StatusOr<StepResult> Step(StoreClient& client) override;

  // Minibatches of this worker that came too late for their round.
  int64_t dropped() const { return dropped_; }

 private:
  GradientSource& source_;
  ModelBinding binding_;
  int64_t dropped_ = 0;
};

}  // namespace muster
