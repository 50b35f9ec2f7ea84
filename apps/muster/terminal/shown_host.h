// The host under whose name this process's experiments are known to the person who reads what it prints: a command that
// was forwarded from another machine (hosts/remote_command.h) speaks of gpu1:4 where it would say 4.
#pragma once

#include <string>

namespace muster {

inline constexpr char kShownHostVariable[] = "MUSTER_SHOWN_HOST";

// Must be called first of all: takes the variable out of the environment, so that no task inherits it.
void TakeShownHost();
// "" if the person is on this machine.
const std::string& ShownHost();

}  // namespace muster
