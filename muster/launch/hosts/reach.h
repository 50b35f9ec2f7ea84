// Whether the hosts of a run reach each other: on each a listener at the address that the others are told, and a
// dialler to all of these. Both block, and are run by an agent as short tasks.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// Listens at "HOST:PORT" beside its reservation, and accepts and closes connections for `lasts`. Calls `listening` once
// it does. The errors of binding.
[[nodiscard]] absl::Status AcceptForReach(const std::string& address, absl::Duration lasts,
                                          absl::FunctionRef<void()> listening);

struct Unreached {
  std::string address;  // as it was given
  std::string why;      // in the system's words, "connection refused (errno 111)"
};

// Connects to all at once, after half of `patience` once more to those that haven't answered, and returns those that
// don't answer within it, in their order.
std::vector<Unreached> DialForReach(const std::vector<std::string>& addresses, absl::Duration patience);

// Returns "10.0.0.3 (eth0), fd00::3 (eth0)": the addresses of this host that others might reach.
std::string OwnAddresses();

}  // namespace muster
