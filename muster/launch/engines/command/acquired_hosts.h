// What the command `acquire` prints: one JSON object a line (docs/command_engine.md). Pure, thread-safe.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/hosts/host_list.h"

namespace muster {

struct AcquiredHosts {
  std::string job;  // the user's system's own name of what has the hosts; "": none was said
  std::vector<Host> hosts;
  std::map<std::string, std::string> ids;  // by name, of those that have one
  std::string waits;                       // why it waits, as was said last

  bool empty() const { return job.empty() && hosts.empty(); }
};

enum class AcquireLine { kHost, kJob, kWaits };

// Takes a line. InvalidArgument says what it is instead of one, and what is accepted.
absl::StatusOr<AcquireLine> TakeAcquireLine(std::string_view line, AcquiredHosts& acquired);

}  // namespace muster
