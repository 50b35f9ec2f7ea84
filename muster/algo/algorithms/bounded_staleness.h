// Bounded staleness (SSP: Ho et al., NIPS 2013): asynchronous training in which no worker gets more than `bound`
// minibatches ahead of the slowest one. A worker computes its minibatch c from values that hold every worker's updates
// up to c - bound - 1, and all its own.
#pragma once

#include "muster/algo/algorithms/algorithm.h"
#include "muster/algo/sources/table_rows.h"

namespace muster {

class BoundedStalenessAlgorithm final : public Algorithm {
 public:
  // `source` must outlive it. With `bound` 0 all workers wait for each other after each minibatch.
  BoundedStalenessAlgorithm(GradientSource& source, PlacementResult placement, const OptimizerSpec& optimizer,
                            uint32_t bound);

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  void Begin(StoreClient& client) override { tables_.Begin(client); }
  // Blocks while the slowest worker is more than `bound` behind.
  absl::StatusOr<StepResult> Step(StoreClient& client) override;

 private:
  GradientSource& source_;
  ModelBinding binding_;
  TableRows tables_{source_};
};

}  // namespace muster
