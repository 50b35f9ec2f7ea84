// A worker's own variables and their global copies on the ps, pushed and pulled by the program, in a session whose
// hooks count the pushes (algo/algorithms/local_variables.h). The module's parameters are the local variables: the
// program trains them with any optimizer of torch's, and the ps see nothing of it until it pushes. A run of the session
// is then PullGlobal, some steps of the program's own, PushDelta: docs/tutorial/local_then_global.md has the whole
// program.
//
// Used by one thread. All functions throw Error, as algo/algorithms/local_variables.h says.
#pragma once

#include <torch/torch.h>

#include <string>

#include "muster/algo/algorithms/local_variables.h"
#include "muster/optim/rule_options.h"
#include "muster/torch_bridge/facade/training.h"

namespace muster {

struct LocalVariablesOptions {
  // What the ps do with a push: PushDelta needs PlainAdd, PushGradients any other rule.
  OptimizerSpec rule = PlainAdd();
};

// The result of one push.
struct LocalPush {
  int64_t global_step = 0;  // with this push
  uint64_t staleness = 0;   // other workers' updates since this worker's last pull or push
};

class LocalVariables final : public Trainer {
 public:
  // Create it before the session. Throws Error: the module has an Embedding, whose rows are only on the ps.
  explicit LocalVariables(Replica& replica, const LocalVariablesOptions& options = {});

  // Call the following functions from the function given to session.Run. That function's loss isn't differentiated: the
  // program does that itself.

  // Sets the module's parameters to the global ones, as the ps hold them now.
  void PullGlobal();
  // Sets them to the global ones of this worker's last pull or push; sends nothing. After both, a new difference
  // begins.
  void AssignGlobalToLocal();
  // global += scale · (local − its value when it was last assigned or pushed). Leaves the module as it is.
  LocalPush PushDelta(const LocalPushOptions& options = {});
  // Adds the parameters' grad() to what PushGradients pushes.
  void AccumulateGradients();
  // The ps apply their rule to scale · the accumulated gradients (if none: the parameters' grad()). The module stays.
  LocalPush PushGradients(const LocalPushOptions& options = {});

  // Returns a copy of the global variable of that name, as of the last pull or push.
  torch::Tensor Global(const std::string& name) const;

 private:
  LocalVariables(Replica& replica, LocalVariablesAlgorithm* algorithm);

  LocalVariablesAlgorithm& algorithm_;  // the trainer owns it
};

}  // namespace muster
