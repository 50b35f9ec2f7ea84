// Network addresses as users write them: "10.0.0.1:2222", "[::1]:2222", "trainer-ps-0.jobs.svc:2222". Checks only the
// form and resolves nothing. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

struct HostPort {
  std::string host;  // without brackets, in lower case; IPv6 in its shortest form
  uint16_t port = 0;
  bool is_ipv6 = false;

  // Returns "host:port", or "[host]:port" for IPv6. Two spellings of one address give the same text.
  std::string ToString() const;

  bool operator==(const HostPort&) const = default;
};

// Accepts a name, an IPv4 address, or an IPv6 address in brackets, then ':' and a port from 1 to 65535. InvalidArgument
// names the text, what is wrong with it and the accepted forms.
absl::StatusOr<HostPort> ParseHostPort(std::string_view text);

}  // namespace muster
