// The flags by which a training program is told its place in the cluster, as TensorFlow's distributed examples have
// them:
// --ps_hosts --worker_hosts --chief_hosts --job_name --task_index --model_dir, on what it computes: --device, and by
// which it is watched: --trace --status_port; each as `--flag=value` or `--flag value`. All others belong to the
// program. Pure functions, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// As written on the command line. An empty value is the same as no flag: scripts write --chief_hosts="$CHIEF".
struct TaskFlags {
  std::optional<std::string> ps_hosts;      // comma-separated addresses
  std::optional<std::string> worker_hosts;  // comma-separated addresses
  std::optional<std::string> chief_hosts;   // one address
  std::optional<std::string> job_name;
  std::optional<std::string> task_index;
  std::optional<std::string> model_dir;
  std::optional<std::string> trace;        // a file
  std::optional<std::string> status_port;  // see StatusAddress
  std::optional<std::string> device;       // see ComputeDevice
};

// Takes those flags out of `arguments` (without the program's name), leaving the others in order. Stops at "--", which
// stays. A flag given twice counts as given last. InvalidArgument: a flag without a value; nothing is taken then.
absl::StatusOr<TaskFlags> TakeTaskFlags(std::vector<std::string>& arguments);
// The same on main's own, argv[0] being the program's name.
absl::StatusOr<TaskFlags> TakeTaskFlags(int& argc, char** argv);

// One line a flag, for a program's --help.
std::string TaskFlagsHelp();

// Without the dashes, for a program's message about a flag that nobody knows (base/nearest_name.h).
std::vector<std::string> TaskFlagNames();

}  // namespace muster
