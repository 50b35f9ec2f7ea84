// Addresses between this process and the nodes of a job, as digits: a node need not resolve the name of this host, and
// what this host calls itself may be an address that the nodes can't reach.
#pragma once

#include <string>
#include <vector>

namespace muster {

// Returns the addresses of this host, the likeliest one first: those from which it reaches the nodes by their names,
// then those of all its interfaces. Loopback is last, and only there if a node is this host or nothing else is. Asks
// the resolver, and blocks as long as that does.
std::vector<std::string> AddressesTowards(const std::vector<std::string>& nodes);

// Returns the address at the other end of a connection; "" if there is none.
std::string PeerAddress(int socket);

}  // namespace muster
