#include "muster/transport/io/tcp_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/net/this_host.h"

namespace muster {

absl::StatusOr<TcpAddress> ParseTcpAddress(const std::string& address) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("'", address, "' is not an address; accepted: host:port or [IPv6]:port, port 0 to 65535"));
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad;
  TcpAddress result{address.substr(0, colon), address.substr(colon + 1)};
  const bool brackets = result.host.size() > 2 && result.host.front() == '[' && result.host.back() == ']';
  if (brackets) {
    result.host = result.host.substr(1, result.host.size() - 2);
  } else if (result.host.find_first_of(":[]") != std::string::npos) {
    return bad;
  }
  int port = 0;
  if (result.port.find_first_not_of("0123456789") != std::string::npos || !absl::SimpleAtoi(result.port, &port) ||
      port > 65535) {
    return bad;
  }
  return result;
}

int Endpoint::port() const {
  return ntohs(family() == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                                    : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

bool Endpoint::is_loopback() const { return IsLoopback(*get()); }

std::string Endpoint::ToString() const {
  char host[NI_MAXHOST] = "";
  if (getnameinfo(get(), length, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) return "an unknown address";
  constexpr absl::string_view kMapped = "::ffff:";
  if (absl::StartsWith(host, kMapped) && absl::StrContains(host, '.'))
    return absl::StrCat(absl::string_view(host).substr(kMapped.size()), ":", port());
  return family() == AF_INET6 ? absl::StrCat("[", host, "]:", port()) : absl::StrCat(host, ":", port());
}

absl::StatusOr<std::vector<Endpoint>> Resolve(const TcpAddress& target, bool numeric_only) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (numeric_only ? AI_NUMERICHOST : 0);
  addrinfo* found = nullptr;
  const int error = getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("the name ", target.host, " can't be resolved: ", absl::AsciiStrToLower(gai_strerror(error))));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Endpoint& endpoint = endpoints.emplace_back();
    std::memcpy(&endpoint.storage, one->ai_addr, one->ai_addrlen);
    endpoint.length = one->ai_addrlen;
  }
  return endpoints;
}

Endpoint LocalEndpoint(int fd) {
  Endpoint endpoint;
  endpoint.length = sizeof(endpoint.storage);
  getsockname(fd, reinterpret_cast<sockaddr*>(&endpoint.storage), &endpoint.length);
  return endpoint;
}

Endpoint RemoteEndpoint(int fd) {
  Endpoint endpoint;
  endpoint.length = sizeof(endpoint.storage);
  getpeername(fd, reinterpret_cast<sockaddr*>(&endpoint.storage), &endpoint.length);
  return endpoint;
}

std::string Describe(int error) {
  std::string text = std::generic_category().message(error);  // unlike strerror, thread-safe
  if (!text.empty()) text[0] = absl::ascii_tolower(text[0]);
  return text;
}

}  // namespace muster
