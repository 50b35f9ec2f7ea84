// Asynchronous training, one update per minibatch: a worker computes gradients from the parameters it pulled last and
// pushes them at once; the ps applies its rule and returns the newest parameters in the same round trip. No worker
// waits for another (Dean et al. 2012 with n_push = n_fetch = 1; TensorFlow's replicated training without
// SyncReplicas). Gradients go out to a ps while others are still being computed, if the store can take them one by one
// (store/client/overlapped_push.h).
#pragma once

#include <optional>

#include "muster/algo/algorithms/algorithm.h"
#include "muster/algo/sources/table_rows.h"
#include "muster/store/client/overlapped_push.h"

namespace muster {

class AsynchronousAlgorithm final : public Algorithm {
 public:
  // `source` must outlive it.
  AsynchronousAlgorithm(GradientSource& source, PlacementResult placement, const OptimizerSpec& optimizer);
  ~AsynchronousAlgorithm() override;

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  // If the client offers the store's own memory, the source trains in it.
  void Begin(StoreClient& client) override;
  absl::StatusOr<StepResult> Step(StoreClient& client) override;

 private:
  absl::StatusOr<StepResult> StepInParts(StoreClient& client, bool chief);

  GradientSource& source_;
  ModelBinding binding_;
  TableRows tables_{source_};
  std::optional<OverlappedPush> parts_;
  bool in_parts_ = false;  // this step pushes gradients one by one
};

}  // namespace muster
