// Makes the trainer of any algorithm by its name, for torch programs (algo/choice/algorithm_table.h lists them,
// docs/algorithms.md explains them). Used by one thread.
#pragma once

#include "muster/algo/choice/algorithm_choice.h"
#include "muster/torch_bridge/facade/training.h"

namespace muster {

// Returns the trainer for `choice` in the replica's cluster, and logs what it is, and its warnings. Deterministic: from
// now on this process computes with one thread, and torch with repeatable kernels. Throws Error (InvalidArgument):
// those of PlanAlgorithm.
Trainer MakeTrainer(Replica& replica, const AlgorithmChoice& choice);

// The same for a program that has an optimizer of its own. If `choice` gives neither worker_rule nor server_rule, the
// optimizer becomes the algorithm's worker_rule if it has one, else its server_rule, with its groups, clipping and
// schedule; a learning_rate in `choice` replaces the rate of its default rule. Otherwise the choice's rules hold, and
// the log says that the optimizer isn't used. Also throws Error (InvalidArgument): those of CheckOptimizer; groups with
// an algorithm that can't have any (aeamsgd, whose momentum is one for all variables).
Trainer MakeTrainer(Replica& replica, const AlgorithmChoice& choice, const OptimizerSpec& optimizer);

}  // namespace muster
