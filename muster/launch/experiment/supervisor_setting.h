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

}  // namespace muster
