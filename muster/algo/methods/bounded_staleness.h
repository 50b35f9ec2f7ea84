// Bounded staleness (SSP: Ho et al., NIPS 2013): asynchronous training in which nobody gets more than `bound`
// minibatches ahead of the slowest worker. What a worker computes its minibatch c with holds all updates up to c -
// bound - 1 of everyone, and its own.
#pragma once

#include "muster/algo/methods/algorithm.h"
#include "muster/algo/sources/table_rows.h"

namespace muster {

class BoundedStalenessAlgorithm final : public Algorithm {
 public:
  // `source` must outlive it. `bound` 0: everybody waits for everybody after each minibatch.
  BoundedStalenessAlgorithm(GradientSource& source, PlacementResult placement, const OptimizerSpec& optimizer,
                            uint32_t bound);

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  void Begin(StoreClient& client) override { tables_.Begin(client); }
  // Waits while the slowest worker is more than `bound` behind.
  absl::StatusOr<StepResult> Step(StoreClient& client) override;

 private:
  GradientSource& source_;
  ModelBinding binding_;
  TableRows tables_{source_};
};

}  // namespace muster
