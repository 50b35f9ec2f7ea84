// Where a session's parts are: which task computes on what, and which ps holds which variable. Makes the table for
// log_device_placement, and checks that device_filters leave nothing out that is needed. Pure functions apart from
// logging, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/cluster/identity/compute_device.h"
#include "muster/cluster/task_id.h"
#include "muster/store/client/store_client.h"

namespace muster {

struct SessionPlace {
  TaskId task{kWorkerJob, 0};
  ComputeDevice device;       // what it computes on
  std::vector<TaskId> ps;     // in the placement's order; empty: the task has a store of its own
  std::vector<TaskId> peers;  // the tasks with which it combines updates without a ps, itself among them
};

// "/job:worker/replica:0/task:1/device:GPU:0".
std::string TaskDevice(const TaskId& task, const ComputeDevice& device);

// A table for people: for every variable, or each of its slices, the ps that holds it; then for every module (what
// stands before the last dot of a variable's name) the bytes of its variables on the device on which this task
// computes.
//
//   variable     task      device                                        bytes
//   hidden.bias  ps:0      /job:ps/replica:0/task:0/device:CPU:0           400
//   …
//   module       task      device                                        bytes
//   hidden       worker:1  /job:worker/replica:0/task:1/device:GPU:0    314000
std::string DevicePlacementTable(const ModelBinding& binding, const SessionPlace& place);

// Logs that table, one event for each line.
void LogDevicePlacement(const ModelBinding& binding, const SessionPlace& place);

// Checks that no task is left out that the session needs: the ps that hold a variable, the first ps, which counts the
// global step, and without ps every worker. Tasks that are left out still hear when this one comes and goes: a ps stays
// until all workers have ended. WrongConfiguration naming the filters, the task and what needs it; InvalidArgument: a
// filter that isn't a device string.
[[nodiscard]] absl::Status CheckDeviceFilters(const std::vector<std::string>& filters, const ModelBinding& binding,
                                              const SessionPlace& place);

// Logs a warning if the program's choice (unset: none) contradicts the cluster's.
void WarnOfWrongChief(const std::optional<bool>& is_chief, bool cluster_says, const TaskId& task);

}  // namespace muster
