// From "two ps, a chief, two workers of this program" to the processes that are to be started: who there is, and the
// TF_CONFIG, the command and the environment of each. Pure functions, thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/task/node_layout.h"
#include "muster/launch/task/task_environment.h"

namespace muster {

struct ClusterRequest {
  int ps = 1;
  int workers = 1;
  int chiefs = 0;  // 0 or 1; without one, worker 0 is the chief
  bool evaluator = false;
  // Instead of those counts: exactly these tasks, the master being the chief.
  std::vector<PlacedTask> layout;
  std::string visible_devices;  // with a layout: the launcher's own CUDA_VISIBLE_DEVICES
  // The command's stand-alone parameter server (`MUSTER_COMMAND ps`) for the ps, instead of the program.
  bool muster_ps = false;
  std::string muster_command;
  std::string model_dir;             // goes into TF_CONFIG if not empty
  std::string output_root;           // for all processes, if not empty
  std::vector<std::string> program;  // with its arguments
  // "NAME=VALUE" each, for all processes.
  std::vector<std::string> environment;
  // What the tasks' parts of the trace begin with (TracePartOf); empty: there is to be none.
  std::string trace_parts;
  // Of the tasks' status pages, in the order of the plan's processes; empty: there are to be none.
  std::vector<int> status_ports;
};

struct ClusterPlan {
  TaskId chief;
  std::vector<ProcessSpec> processes;  // in the order in which to start them: ps, chief, workers, evaluator
};

// All tasks, which may have status pages.
int TasksOf(const ClusterRequest& request);
// Tasks that have a server and so need an address: all but the evaluator.
int AddressesNeeded(const ClusterRequest& request);

// InvalidArgument naming the flag of `muster run`, its value and what is accepted.
[[nodiscard]] absl::Status ValidateRequest(const ClusterRequest& request);

// `addresses` are AddressesNeeded many. The token and the run's name go into each environment.
absl::StatusOr<ClusterPlan> PlanCluster(const ClusterRequest& request, const std::vector<std::string>& addresses,
                                        const std::string& job_token, const std::string& run_id);

// What would be started, as lines for a shell, each below a comment that names its task. The token is shown as "…".
std::string DryRunText(const ClusterPlan& plan);

}  // namespace muster
