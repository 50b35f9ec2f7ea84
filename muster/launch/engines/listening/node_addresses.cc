#include "muster/launch/engines/listening/node_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "muster/base/net/this_host.h"
#include "muster/transport/io/socket.h"

namespace muster {
namespace {

// Names beyond these would only cost time: the nodes of a job are on one network.
constexpr size_t kMostResolved = 2;
constexpr char kDiscardPort[] = "9";  // nothing is sent there

// "" for what others can't use.
std::string DigitsOf(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  } else if (address.sa_family == AF_INET6) {
    const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&six)) {
      inet_ntop(AF_INET, &six.s6_addr[12], text, sizeof text);
    } else if (!IN6_IS_ADDR_LINKLOCAL(&six)) {
      inet_ntop(AF_INET6, &six, text, sizeof text);
    }
  }
  return text;
}

// Appends the addresses from which the kernel would send to the node. Connecting a datagram socket sends nothing.
void AppendOwnTowards(const std::string& node, std::vector<std::string>& addresses) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(node.c_str(), kDiscardPort, &hints, &found) != 0) return;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> freed(found, freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const Socket probe(socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    if (!probe.valid() || connect(probe.fd(), one->ai_addr, one->ai_addrlen) != 0 ||
        getsockname(probe.fd(), reinterpret_cast<sockaddr*>(&own), &length) != 0)
      continue;
    addresses.push_back(DigitsOf(reinterpret_cast<const sockaddr&>(own)));
  }
}

void AppendOfInterfaces(std::vector<std::string>& addresses) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> freed(all, freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr && (one->ifa_flags & IFF_UP) != 0 && !IsLoopback(*one->ifa_addr))
      addresses.push_back(DigitsOf(*one->ifa_addr));
}

}  // namespace

std::vector<std::string> AddressesTowards(const std::vector<std::string>& nodes) {
  std::vector<std::string> found;
  for (size_t i = 0; i < std::min(nodes.size(), kMostResolved); ++i)
    AppendOwnTowards(nodes[nodes.size() - 1 - i], found);
  AppendOfInterfaces(found);
  std::vector<std::string> addresses;
  for (const std::string& address : found)
    if (!address.empty() && std::find(addresses.begin(), addresses.end(), address) == addresses.end())
      addresses.push_back(address);
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const std::string& one) { return !one.starts_with("127.") && one != "::1"; });
  if (addresses.empty()) addresses.emplace_back("127.0.0.1");
  return addresses;
}

std::string PeerAddress(int socket) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return "";
  return DigitsOf(reinterpret_cast<const sockaddr&>(peer));
}

}  // namespace muster
