// Turns "two ps, a chief, two workers of this program" into the processes to start: which tasks there are, and the
// TF_CONFIG, command and environment of each. Pure functions, thread-safe.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
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
  // If not empty, used instead of those counts: exactly these tasks; the master is the chief.
  std::vector<PlacedTask> layout;
  std::map<TaskId, std::string> hosts;  // where the tasks run; empty: on this machine
  std::string directory;                // of all that run the program; empty: the launcher's
  std::string visible_devices;          // with a layout: the launcher's own CUDA_VISIBLE_DEVICES
  // Whether each ps runs the stand-alone parameter server (`MUSTER_COMMAND ps`) instead of the program.
  bool muster_ps = false;
  std::string muster_command;
  std::string model_dir;             // goes into TF_CONFIG if not empty
  std::string output_root;           // for all processes, if not empty
  std::vector<std::string> program;  // with its arguments
  std::optional<int> processors;     // of this machine, for all processes together; unset: as many as they may use
  // "NAME=VALUE" each, for all processes; before TakeVariables also "NAME".
  std::vector<std::string> environment;
  // Prefix of the files with the tasks' parts of the trace (TracePartOf); empty: no trace.
  std::string trace_parts;
  // Ports of the tasks' status pages, in the order of the plan's processes; empty: no status pages.
  std::vector<int> status_ports;
};

struct ClusterPlan {
  TaskId chief;
  std::vector<ProcessSpec> processes;  // in the order in which to start them: ps, chief, workers, evaluator
};

// Returns TF_CONFIG: the cluster's JSON, which is the same text for all tasks, and the other keys of one task.
std::string TfConfigText(const std::string& cluster, const nlohmann::json& rest);

// Returns the tasks in the order of the plan's processes. Each may have a status page.
std::vector<TaskId> TasksOf(const ClusterRequest& request);
// Returns the task whose end is the run's.
TaskId ChiefOf(const ClusterRequest& request);
// Returns the number of tasks that have a server and so need an address: all but the evaluator.
int AddressesNeeded(const ClusterRequest& request);

// Gives each "NAME" of request.environment the value that it has in `environment`, the launcher's own. InvalidArgument:
// it isn't set there.
[[nodiscard]] absl::Status TakeVariables(const std::vector<std::string>& environment, ClusterRequest& request);

// Returns InvalidArgument naming the flag of `muster run`, its value and what is accepted.
[[nodiscard]] absl::Status ValidateRequest(const ClusterRequest& request);

// Needs AddressesNeeded(request) many `addresses`. Puts the token and the run's id into each environment.
absl::StatusOr<ClusterPlan> PlanCluster(const ClusterRequest& request, const std::vector<std::string>& addresses,
                                        const std::string& job_token, const std::string& run_id);

// Returns what would be started as lines to paste into a shell, for each node in a block of its own: the tasks in the
// background, each below a comment that names it, and a wait for them. The lines make a token for the job, which the
// text doesn't contain: for several nodes as a file, which the first one's lines copy to the others. Without the run's
// id, so that the tasks name themselves in their logs.
std::string DryRunText(const ClusterPlan& plan);

}  // namespace muster
