// One run in the foreground of a terminal, from the first process to the last: starts the processes of a plan, shows
// what they write, does what the TaskSupervisor decides, and returns when all have ended. Everything happens in the
// calling thread, which must be the process's only one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/net/free_ports.h"
#include "muster/launch/foreground/cluster_plan.h"
#include "muster/launch/foreground/run_trace.h"
#include "muster/launch/output/log_mux.h"

namespace muster {

struct ForegroundOptions {
  // The same id as in the plan's environments.
  std::string run_id;
  // "NAME=VALUE": the environment of every process, besides what the plan adds.
  std::vector<std::string> environment;
  absl::Duration stop_grace = absl::Seconds(30);
  int max_restarts = 0;  // of each task, for ends that IsRetryableInForeground accepts
  LogMuxOptions log;
  RunTrace* trace = nullptr;  // borrowed; null: no trace
  // Runs beside the tasks until they have ended; they go on if it fails.
  std::optional<ProcessSpec> companion = std::nullopt;
  std::vector<std::string> notes = {};  // lines for the user, shown once all tasks run
};

// Returns the exit code to end with, which is the chief's. `ports` holds the ports of the plan's addresses, in its
// order. After an error nothing runs: NotFound, PermissionDenied or InvalidArgument if nothing was started (no such
// program, a log directory that can't be written), anything else if starting failed half-way.
absl::StatusOr<int> RunInForeground(const ClusterPlan& plan, FreePorts ports, const ForegroundOptions& options);

}  // namespace muster
