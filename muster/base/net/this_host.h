// Whether a connection's other end is a process of this host. Thread-safe.
#pragma once

#include <sys/socket.h>

#include <string>

namespace muster {

// `peer`: "127.0.0.1:5000", "[::1]:5000". True for a loopback address, and for one that an interface of this host
// has. False for what isn't an address.
bool IsThisHost(const std::string& peer);

// True for 127.0.0.0/8, ::1 and ::ffff:127.0.0.0/104, which only processes of this host reach. `address` is as large as
// its family's.
bool IsLoopback(const sockaddr& address);

}  // namespace muster
