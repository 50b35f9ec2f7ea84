// The flags that tell a training program its place in the cluster, as in TensorFlow's distributed examples: --ps_hosts
// --worker_hosts --chief_hosts --job_name --task_index --model_dir; where srun or torchrun start it: --ps --first_port;
// on what it computes: --device; how it is watched: --trace --status_port; how long synchronous training waits for it:
// --stall_limit. Each is written
// `--flag=value` or `--flag value`. All other flags belong to the program. Pure functions, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// The values as written on the command line. An empty list of hosts, folder or file is the same as no flag: scripts
// write --chief_hosts="$CHIEF".
struct TaskFlags {
  std::optional<std::string> ps_hosts;      // comma-separated addresses
  std::optional<std::string> worker_hosts;  // comma-separated addresses
  std::optional<std::string> chief_hosts;   // one address
  std::optional<std::string> job_name;
  std::optional<std::string> task_index;
  std::optional<std::string> ps;          // a number; see role_source.h
  std::optional<std::string> first_port;  // a number; see role_source.h
  std::optional<std::string> model_dir;
  std::optional<std::string> trace;         // a file
  std::optional<std::string> status_port;   // see StatusAddress
  std::optional<std::string> device;        // see ComputeDevice
  std::optional<std::string> stall_limit;   // seconds; see TaskConfig::stall_limit
  std::optional<std::string> join_timeout;  // seconds; see TaskConfig::join_timeout
  std::optional<std::string> linger;        // seconds; see TaskConfig::linger
  std::optional<std::string> on_signal;     // end or leave; see TaskConfig::leaves_on_signal
};

// Takes those flags out of `arguments` (without the program's name) and leaves the others in order. Stops at "--",
// which stays. If a flag is given twice, the last one counts. InvalidArgument: a flag without a value, or with an
// empty one where that isn't so; nothing is taken then.
absl::StatusOr<TaskFlags> TakeTaskFlags(std::vector<std::string>& arguments);
// Does the same on main's own arguments, argv[0] being the program's name.
absl::StatusOr<TaskFlags> TakeTaskFlags(int& argc, char** argv);

// Returns one line per flag, for a program's --help.
std::string TaskFlagsHelp();

// Returns the flags' names without the dashes, for a program's message about an unknown flag
// (base/text/nearest_name.h).
std::vector<std::string> TaskFlagNames();

}  // namespace muster
