// Any algorithm by its name, for torch programs (algo/algorithm_table.h lists them, docs/algorithms.md explains them).
// Used by one thread.
#pragma once

#include "muster/algo/algorithm_choice.h"
#include "muster/torch_bridge/training.h"

namespace muster {

// The trainer that `choice` means in the replica's cluster; what it is, and its warnings, go to the log. Deterministic:
// this process computes with one thread, and torch with kernels that repeat, from now on. Throws Error
// (InvalidArgument): what PlanAlgorithm says.
Trainer MakeTrainer(Replica& replica, const AlgorithmChoice& choice);

}  // namespace muster
