// TensorFlow's SyncReplicasOptimizer (python/training/sync_replicas_optimizer.py) under its own names, on top of
// SynchronousAlgorithm: the mean of `replicas_to_aggregate` workers' gradients makes an update, and all continue with
// it. The ps's gate (docs/store/gates.md) takes the place of its accumulators and its queue of tokens. It needs no
// thread of the chief, and no worker waits for one that has ended. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "muster/algo/algorithms/synchronous.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

// Warns in the log if there will never be so many replicas. `workers`: how many the cluster has, the chief among them.
void WarnOfMissingReplicas(uint32_t total_num_replicas, size_t workers);

class SyncReplicasOptimizer {
 public:
  // `total_num_replicas`: workers, the chief among them; unset: `replicas_to_aggregate`. If it is larger, the slowest
  // gradients of a round are dropped. If it is smaller, a round is complete with one gradient of each worker that is
  // there (in TensorFlow a worker then gives several).
  SyncReplicasOptimizer(OptimizerSpec rule, uint32_t replicas_to_aggregate,
                        std::optional<uint32_t> total_num_replicas = std::nullopt);

  // Makes the algorithm of this optimizer (TensorFlow's apply_gradients). `source` must outlive it.
  std::unique_ptr<Algorithm> Apply(GradientSource& source, PlacementResult placement);

  // A hook for every worker's session; `is_chief` must be the session's. Its Begin fails with FailedPrecondition before
  // Apply; with InvalidArgument when `num_tokens` (those that TensorFlow's chief hands out at first; -1: one per
  // gradient) are too few for the first step. More tokens change nothing here: the gate knows each worker's round. The
  // hook only checks: a session without it trains the same.
  std::shared_ptr<SessionHook> MakeSessionRunHook(bool is_chief, int64_t num_tokens = -1) const;

  uint32_t replicas_to_aggregate() const { return options_.replicas_to_aggregate; }
  uint32_t total_num_replicas() const { return options_.total_replicas; }

 private:
  const OptimizerSpec rule_;
  const SynchronousOptions options_;
  std::shared_ptr<bool> applied_ = std::make_shared<bool>(false);  // the hooks read it when their session begins
};

}  // namespace muster
