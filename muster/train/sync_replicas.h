// TensorFlow's SyncReplicasOptimizer (python/training/sync_replicas_optimizer.py) by its own words, over
// SynchronousAlgorithm: the mean of `replicas_to_aggregate` workers' gradients makes an update, and all go on with it.
// Its accumulators and its queue of tokens are the ps's gate here (docs/store/gates.md), which needs no thread of
// the chief and lets nobody wait for a worker that has ended. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "muster/algo/synchronous.h"
#include "muster/train/session_hook.h"

namespace muster {

// A warning in the log: there are never so many replicas. `workers`: the cluster's, the chief among them.
void WarnOfMissingReplicas(uint32_t total_num_replicas, size_t workers);

class SyncReplicasOptimizer {
 public:
  // `total_num_replicas`: workers, the chief among them; unset: `replicas_to_aggregate`. More of them: the slowest
  // gradients of a round are dropped. Fewer: a round is complete with one gradient of each worker
  // that is there (in TensorFlow a worker gives several then).
  SyncReplicasOptimizer(OptimizerSpec rule, uint32_t replicas_to_aggregate,
                        std::optional<uint32_t> total_num_replicas = std::nullopt);

  // The algorithm of this optimizer (TensorFlow's apply_gradients). `source` must outlive it.
  std::unique_ptr<Algorithm> Apply(GradientSource& source, PlacementResult placement);

  // For every worker's session, `is_chief` as the session has it. Its Begin fails with FailedPrecondition before Apply;
  // with InvalidArgument when `num_tokens` (those that TensorFlow's chief lays out at first; -1: one a gradient) are
  // too few for the first step. More tokens than that change nothing here: the gate knows each worker's round. It
  // stands for training, not in its way: a session without it trains the same.
  std::shared_ptr<SessionHook> MakeSessionRunHook(bool is_chief, int64_t num_tokens = -1) const;

  uint32_t replicas_to_aggregate() const { return options_.replicas_to_aggregate; }
  uint32_t total_num_replicas() const { return options_.total_replicas; }

 private:
  const OptimizerSpec rule_;
  const SynchronousOptions options_;
  std::shared_ptr<bool> applied_ = std::make_shared<bool>(false);  // hooks look at it when their session begins
};

}  // namespace muster
