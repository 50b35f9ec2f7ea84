// How many threads a task may compute with on its host. More threads than processors make each other wait: OpenMP's
// threads spin, and a worker's would keep its ps from running. Pure functions, thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/base/os/processors.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/task_config.h"

namespace muster {

struct ComputeThreads {
  int threads = 1;
  std::string why;    // "OMP_NUM_THREADS", "4 processors of this machine; tasks on this host: 2 computing, 1 ps"
  int computing = 1;  // tasks on the host that train or evaluate, including this one
  int ps = 0;         // parameter servers on the host
};

// The processors that the job may use, shared with the cluster's other tasks on the host: each ps gets one; the tasks
// that compute share the others evenly and get at least one each. Tasks are on one host if their addresses name the
// same host, including the names by which a host calls itself ("localhost", 127.0.0.1). An evaluator, which has no
// address, and a process alone get all.
//
// What is said of this process alone isn't shared: OMP_NUM_THREADS, and SLURM_CPUS_PER_TASK if Slurm itself started the
// process. (Slurm's number for `muster run` is that of all its tasks.)
ComputeThreads ComputeThreadsOf(const TaskConfig& task, const Environment& environment, const Processors& processors);

// Returns the processors that the job may use here. InvalidArgument: MUSTER_PROCESSORS is no number from 1.
absl::StatusOr<Processors> ProcessorsOfJob(const Environment& environment);

}  // namespace muster
