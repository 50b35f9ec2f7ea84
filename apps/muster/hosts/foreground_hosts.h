// The hosts of `muster run --on command`: got before anything else, given back when it ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/engines/command/held_hosts.h"
#include "muster/launch/hosts/command_setting.h"
#include "muster/launch/hosts/host_list.h"

namespace muster {

// Returns as many hosts without their names, for a plan that is only shown.
std::vector<Host> HostsToShow(const CommandSetting& commands);

// Gives back what killed processes have held, and gets the hosts. Blocks until they are there; says on stderr why it
// waits. Cancelled: Ctrl-C, or SIGTERM; all is given back. Unavailable: there are none, in a sentence for the user.
absl::StatusOr<std::unique_ptr<HeldHosts>> AcquireForForeground(const CommandSetting& commands,
                                                                const std::vector<std::string>& environment);

}  // namespace muster
