// What a supervisor hands on to the programs that it starts: never stored, only in the memory of processes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "muster/launch/backends/backend.h"

namespace muster {

struct SupervisorSetting {
  std::string engine = kThisMachine;  // where the tasks run: see MakeBackend
  std::string muster_command;         // this program
  // "NAME=VALUE": that of the shell which started the experiment. The variables that the registry keeps win over it.
  std::vector<std::string> environment;
  mode_t users_umask = 022;  // of the shell: for the tasks and OUTPUT_DIR
};

// Returns the value of a variable of "NAME=VALUE"s; "" if it isn't there.
std::string ValueIn(const std::vector<std::string>& environment, const std::string& name);
// Returns the user's environment without variables that would make a task part of another run.
std::vector<std::string> OutsideVariables(std::vector<std::string> environment);
// Returns the machine's GPUs, or only those that `visible`, the user's own CUDA_VISIBLE_DEVICES, names by number.
std::vector<int> GpusOfMachine(const std::string& visible);

}  // namespace muster
