// One run in the foreground of a terminal, from the first process to the last: plans a cluster once its addresses are
// reserved, and shows what its tasks write. TaskRun starts, supervises and ends them. Everything happens in the calling
// thread, which must be the process's only one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/foreground/cluster_plan.h"
#include "muster/launch/foreground/copied_folder.h"
#include "muster/launch/foreground/run_trace.h"
#include "muster/launch/output/log_mux.h"

namespace muster {

struct ForegroundOptions {
  std::string engine = kThisMachine;  // see MakeBackend
  HostPlan plan = {};                 // of an engine that has hosts
  CopiedFolder* copied = nullptr;     // borrowed; what hosts get that don't see it; null: nothing
  std::string run_id;
  std::string job_token;
  // The first of the ports of the tasks' status pages; 0: any; unset: no pages.
  std::optional<uint16_t> first_status_port;
  // "NAME=VALUE": the environment of every process, besides what the plan adds.
  std::vector<std::string> environment;
  absl::Duration stop_grace = absl::Seconds(30);
  // When a task goes to another host, all are started again: for programs that know only TF_CONFIG.
  bool restart_all = false;
  int max_restarts = 0;  // of each task, for ends that IsRetryableInForeground accepts
  LogMuxOptions log;
  RunTrace* trace = nullptr;            // borrowed; null: no trace
  std::string tensorboard_folder = "";  // TensorBoard shows it while the tasks run; empty: none is started
  std::vector<std::string> notes = {};  // lines for the user, shown once all tasks run
};

// Returns the exit code to end with, which is the chief's. Sets the request's status ports itself. After an error
// nothing runs: NotFound, PermissionDenied or InvalidArgument if nothing was started (no such program, a port in use, a
// log directory that can't be written) or ResourceExhausted (no port of HostPlan::ports is free), anything else if
// starting failed half-way. Unavailable, before anything was started: hosts that can't be used, a line each.
absl::StatusOr<int> RunInForeground(const ClusterRequest& request, const ForegroundOptions& options);

}  // namespace muster
