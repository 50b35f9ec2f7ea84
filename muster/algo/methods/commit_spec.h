// What the commit pipeline (commit_pipeline.h) does between a minibatch and the ps: every algorithm with a ps is one
// setting of these. docs/algorithms.md has the pipeline, algorithm_table.h the settings by name. A plain value.
#pragma once

#include <cstdint>
#include <optional>

#include "muster/optim/optimizer_spec.h"
#include "muster/optim/staleness_scale.h"
#include "muster/store/model/model.h"

namespace muster {

// What a worker gives to the ps at the end of a window. θ are its own values, θ₀ those that it pulled last.
enum class CommitKind : uint8_t {
  kGradient,        // the sum of the window's gradients; the ps apply a rule that descends
  kDelta,           // θ − θ₀; the ps add it (the rule add)
  kPseudoGradient,  // θ₀ − θ, a gradient for a rule that descends (DiLoCo's outer gradient)
  kExchange,        // θ: the ps and the worker move towards each other by α (θ − centre), one worker at a time
  kSharedExchange,  // the same of all workers at once: needs the synchronous gate, and the rule add
};

struct CommitSpec {
  CommitKind kind = CommitKind::kGradient;
  // Minibatches a commit; the last one of a run has as many as are left.
  uint32_t window = 1;
  // Minibatches between two fetches of the global values. 0: with each commit. kGradient and kDelta without a gate
  // only.
  uint32_t fetch_window = 0;
  // How the worker moves its own values after each minibatch, with slots of its own. Nothing: it doesn't; all
  // minibatches of a window are computed from the same values.
  std::optional<OptimizerSpec> worker_rule;
  bool mean = false;  // what is committed is divided by the number of its minibatches
  double scale = 1;   // what is committed is multiplied by, besides

  StalenessScale staleness_scale = StalenessScale::kNone;
  double compensation = 0;  // λ of DelayCompensation; 0: none. kGradient, without worker_rule
  // γ of ADAG's per-weight scale (adaptive_delta.h); 0: none. kDelta only.
  double adaptive = 0;

  double alpha = 0;     // of kExchange and kSharedExchange: 0 < α ≤ 1
  double momentum = 0;  // of kExchange: δ of EAMSGD's Nesterov momentum; the worker rule is SGD then. 0: none

  GateSpec gate = {};
  std::optional<uint32_t> staleness_bound;  // commits that a worker may be ahead of the slowest

  // Commits are admitted in the workers' order, one of each in turn: a run is repeatable, bit for bit. All workers of
  // the cluster take part from the beginning to the end.
  bool deterministic = false;
};

}  // namespace muster
