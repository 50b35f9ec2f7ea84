// Network addresses as users write them: "10.0.0.1:2222", "[::1]:2222", "trainer-ps-0.jobs.svc:2222". Checks the form
// only, resolves nothing. Pure functions, thread-safe.
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

  // "host:port", "[host]:port" for IPv6: equal for two spellings of one address.
  std::string ToString() const;

  bool operator==(const HostPort&) const = default;
};

// A name, an IPv4 address or an IPv6 address in brackets, then ':' and a port from 1 to 65535. InvalidArgument naming
// the text, what is wrong with it and the accepted forms.
absl::StatusOr<HostPort> ParseHostPort(std::string_view text);

}  // namespace muster
