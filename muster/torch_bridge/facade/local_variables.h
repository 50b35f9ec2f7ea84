// A worker's own variables and their global copies on the ps, pushed and pulled by the program, in a session whose
// hooks count the pushes (algo/local_variables.h). The module's parameters are the local variables: the program trains
// them with any optimizer of torch's, and nobody hears of it until it pushes. A run of the session is then PullGlobal,
// some steps of the program's own, PushDelta: docs/tutorial/local_then_global.md has the whole program.
//
// Used by one thread. All of it throws Error, as algo/local_variables.h says.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>

#include "muster/algo/methods/local_variables.h"
#include "muster/optim/rule_options.h"
#include "muster/torch_bridge/facade/training.h"

namespace muster {

struct LocalVariablesOptions {
  // What the ps do with what is pushed: PushDelta needs PlainAdd, PushGradients any other.
  OptimizerSpec rule = PlainAdd();
};

// What one push came to.
struct LocalPush {
  int64_t global_step = 0;  // with it
  uint64_t staleness = 0;   // updates of others since this worker's last pull or push
};

class LocalVariables final : public Trainer {
 public:
  // Make it before the session. Throws Error: the module has an Embedding, whose rows are on the ps alone.
  explicit LocalVariables(Replica& replica, const LocalVariablesOptions& options = {});

  // The following are called from the function that session.Run is given. That function's loss isn't differentiated:
  // the program does that itself.

  // The module's parameters become the global ones, as the ps hold them now.
  void PullGlobal();
  // … as the last pull or push of this worker brought them; nothing is sent. With both a new difference begins.
  void AssignGlobalToLocal();
  // global += scale · (local − what it was when it was assigned or pushed last). The module stays as it is.
  LocalPush PushDelta(const LocalPushOptions& options = {});
  // Adds the parameters' grad() to what PushGradients pushes.
  void AccumulateGradients();
  // The ps apply their rule to scale · what was accumulated (nothing: to the parameters' grad()). The module stays.
  LocalPush PushGradients(const LocalPushOptions& options = {});

  // A copy of the global variable of that name, as the last pull or push brought it.
  torch::Tensor Global(const std::string& name) const;

 private:
  LocalVariables(Replica& replica, LocalVariablesAlgorithm* algorithm);

  LocalVariablesAlgorithm& algorithm_;  // the trainer owns it
};

}  // namespace muster
