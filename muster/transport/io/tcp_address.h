// Addresses as text and in the kernel's form. Internal to tcp/. Thread-safe.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

struct TcpAddress {
  std::string host;  // without the brackets of IPv6
  std::string port;  // decimal, 0…65535
};

// Parses "host:port" or "[v6]:port". InvalidArgument names the address and what is accepted.
absl::StatusOr<TcpAddress> ParseTcpAddress(const std::string& address);

struct Endpoint {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  int port() const;
  bool is_loopback() const;
  bool operator==(const Endpoint& other) const { return ToString() == other.ToString(); }
  // "127.0.0.1:2222", "[::1]:2222". An IPv4 address within IPv6 reads as in IPv4.
  std::string ToString() const;
};

// Returns at least one endpoint. `numeric_only`: doesn't block, and fails for a name. Unavailable gives the resolver's
// reason.
absl::StatusOr<std::vector<Endpoint>> Resolve(const TcpAddress& target, bool numeric_only);

Endpoint LocalEndpoint(int fd);
Endpoint RemoteEndpoint(int fd);

// The operating system's text for an errno, e.g. "connection refused".
std::string Describe(int error);

}  // namespace muster
