// Whether a connection's other end is a process of this host. Thread-safe.
#pragma once

#include <string>

namespace muster {

// `peer`: "127.0.0.1:5000", "[::1]:5000". True for a loopback address, and for one that an interface of this host
// has. False for what isn't an address.
bool IsThisHost(const std::string& peer);

}  // namespace muster
