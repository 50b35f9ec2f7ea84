// How many threads a task's computing gets on its host: the cores, shared with the other tasks of the cluster there.
// More threads than cores make each other wait: OpenMP's spin, and a worker's would keep its ps from running. Pure
// functions, but for AvailableCores; thread-safe.
#pragma once

#include <string>

#include "muster/cluster/identity/task_config.h"

namespace muster {

// Those that this process may run on.
int AvailableCores();

struct ComputeThreads {
  int threads = 1;
  int computing = 1;  // tasks on the host that train or evaluate, this one among them
  int ps = 0;         // … ps on the host
};

// A ps keeps a core; who computes shares the others evenly, and has one at least. Tasks are on one host if their
// addresses name the same one, in whatever way a host calls itself ("localhost", 127.0.0.1). Of an evaluator, which is
// on no address, and of a process alone: all cores.
ComputeThreads ComputeThreadsOf(const TaskConfig& task, int cores);

}  // namespace muster
