// Runs one of this muster's own commands on a host that ssh reaches. Blocking; the process must have no other thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/backends/backend.h"

namespace muster {

// `plan`: hosts, of which `host` is one. Returns what the command has written on its stdout. Unavailable: the host
// can't be used; Internal: the command has failed, with what it has said.
absl::StatusOr<std::string> RunOnHost(const HostPlan& plan, const Host& host, std::vector<std::string> words);

}  // namespace muster
