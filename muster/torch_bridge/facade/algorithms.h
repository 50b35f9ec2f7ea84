// Any algorithm by its name, for torch programs (algo/algorithm_table.h lists them, docs/algorithms.md explains them).
// Used by one thread.
#pragma once

#include "muster/algo/choice/algorithm_choice.h"
#include "muster/torch_bridge/facade/training.h"

namespace muster {

// The trainer that `choice` means in the replica's cluster; what it is, and its warnings, go to the log. Deterministic:
// this process computes with one thread, and torch with kernels that repeat, from now on. Throws Error
// (InvalidArgument): what PlanAlgorithm says.
Trainer MakeTrainer(Replica& replica, const AlgorithmChoice& choice);

// The same for a program that has an optimizer of its own. Where `choice` says neither worker_rule nor server_rule, the
// optimizer is the algorithm's worker_rule if it has one, else its server_rule, with its groups, clipping and schedule;
// a learning_rate of `choice` takes the place of the one of its default rule. Otherwise the choice's rules hold, and
// the log says that the optimizer isn't used. Throws Error (InvalidArgument) besides: what CheckOptimizer says; groups
// where the algorithm can't have any (aeamsgd, whose momentum is one for all variables).
Trainer MakeTrainer(Replica& replica, const AlgorithmChoice& choice, const OptimizerSpec& optimizer);

}  // namespace muster
