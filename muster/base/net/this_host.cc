#include "muster/base/net/this_host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>

namespace muster {
namespace {

// IPv4 addresses as the IPv6 addresses that stand for them.
std::optional<in6_addr> Parse(std::string host) {
  in6_addr address{};
  if (inet_pton(AF_INET6, host.c_str(), &address) == 1) return address;
  host.insert(0, "::ffff:");
  if (inet_pton(AF_INET6, host.c_str(), &address) == 1) return address;
  return std::nullopt;
}

std::optional<in6_addr> AddressOf(const sockaddr& socket) {
  char text[INET6_ADDRSTRLEN] = {};
  if (socket.sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(socket).sin_addr, text, sizeof text);
  } else if (socket.sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(socket).sin6_addr, text, sizeof text);
  }
  return Parse(text);
}

bool IsLoopbackAddress(const in6_addr& address) {
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

}  // namespace

bool IsThisHost(const std::string& peer) {
  std::string host = peer.substr(0, peer.rfind(':'));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::optional<in6_addr> address = Parse(host);
  if (!address) return false;
  if (IsLoopbackAddress(*address)) return true;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return false;
  bool found = false;
  for (const ifaddrs* i = interfaces; i != nullptr && !found; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    const auto own = AddressOf(*i->ifa_addr);
    found = own && std::memcmp(&*own, &*address, sizeof *address) == 0;
  }
  freeifaddrs(interfaces);
  return found;
}

bool IsLoopback(const sockaddr& address) {
  const std::optional<in6_addr> parsed = AddressOf(address);
  return parsed && IsLoopbackAddress(*parsed);
}

}  // namespace muster
