// How many threads a task may compute with on its host: the cores, shared with the cluster's other tasks there. More
// threads than cores make each other wait: OpenMP's threads spin, and a worker's would keep its ps from running. Pure
// functions, except AvailableCores; thread-safe.
#pragma once

#include "muster/cluster/identity/task_config.h"

namespace muster {

// The number of cores that this process may run on.
int AvailableCores();

struct ComputeThreads {
  int threads = 1;
  int computing = 1;  // tasks on the host that train or evaluate, including this one
  int ps = 0;         // parameter servers on the host
};

// Each ps gets one core; the tasks that compute share the others evenly and get at least one each. Tasks are on one
// host if their addresses name the same host, including the names by which a host calls itself ("localhost",
// 127.0.0.1). An evaluator, which has no address, and a process alone get all cores.
ComputeThreads ComputeThreadsOf(const TaskConfig& task, int cores);

}  // namespace muster
