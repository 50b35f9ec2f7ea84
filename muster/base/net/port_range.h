// Which TCP ports servers of a run may get: a range that the user names, as a firewall lets it through, or numbers that
// no outgoing connection takes. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

inline constexpr char kPortRangeForm[] = "FIRST-LAST, as 40000-40100, from 1 to 65535";

struct PortRange {
  uint16_t first = 0;
  uint16_t count = 0;

  // Returns "40000-40100".
  std::string ToString() const;
  bool operator==(const PortRange&) const = default;
};

// Reads "40000-40100". InvalidArgument says what is accepted.
absl::StatusOr<PortRange> ParsePortRange(absl::string_view text);

// Returns ports outside of those that this machine uses for outgoing connections: no connection that the run's own
// first processes make can take a port between its release and its server's bind. Prefers 20000 to 32767, which lie
// below Linux's own choice, then what is above, then what is below; the largest part where all are small. Pure.
PortRange PortsOutside(const PortRange& outgoing);
// Returns them for what `file` says, two numbers; for Linux's own choice if it can't be read.
PortRange UsualPorts(const std::string& file = "/proc/sys/net/ipv4/ip_local_port_range");

}  // namespace muster
