#include "muster/launch/hosts/reach.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/clock.h"
#include "muster/base/net/this_host.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/io/tcp_address.h"

namespace muster {
namespace {

constexpr int kBacklog = 1024;

int MillisecondsUntil(absl::Time end) {
  const absl::Duration left = std::max(absl::ZeroDuration(), end - RealClock().Now());
  return static_cast<int>(absl::ToInt64Milliseconds(left + absl::Microseconds(999)));
}

absl::StatusOr<Endpoint> Resolved(const std::string& address) {
  ASSIGN_OR_RETURN(const TcpAddress target, ParseTcpAddress(address));
  ASSIGN_OR_RETURN(const std::vector<Endpoint> endpoints, Resolve(target, /*numeric_only=*/false));
  return endpoints.front();
}

// An address that is being dialled.
struct Dialled {
  Unreached unreached;
  std::vector<Socket> tries = {};
  bool done = false;  // `unreached.why` says how it ended; empty: it is connected
};

void End(Dialled& dialled, int error) {
  dialled.done = true;
  if (error != 0) dialled.unreached.why = absl::StrCat(Describe(error), " (errno ", error, ")");
}

void Dial(Dialled& dialled) {
  const absl::StatusOr<Endpoint> endpoint = Resolved(dialled.unreached.address);
  if (!endpoint.ok()) {
    dialled.done = true;
    dialled.unreached.why = std::string(endpoint.status().message());
    return;
  }
  const Socket& socket =
      dialled.tries.emplace_back(::socket(endpoint->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(socket.fd(), endpoint->get(), endpoint->length) == 0)
    End(dialled, 0);
  else if (errno != EINPROGRESS)
    End(dialled, errno);
}

void TakeResult(Dialled& dialled, int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (!dialled.done) End(dialled, error);
}

// Returns false once nothing is left to wait for, or time is over.
bool AwaitSome(std::vector<Dialled>& all, absl::Time until) {
  std::vector<pollfd> waiting;
  std::vector<Dialled*> whose;
  for (Dialled& one : all) {
    if (one.done) continue;
    for (const Socket& socket : one.tries) {
      waiting.push_back({.fd = socket.fd(), .events = POLLOUT, .revents = 0});
      whose.push_back(&one);
    }
  }
  if (waiting.empty()) return false;
  if (Uninterrupted([&] { return poll(waiting.data(), waiting.size(), MillisecondsUntil(until)); }) <= 0) return false;
  for (size_t i = 0; i < waiting.size(); ++i)
    if (waiting[i].revents != 0) TakeResult(*whose[i], waiting[i].fd);
  return true;
}

}  // namespace

absl::Status AcceptForReach(const std::string& address, absl::Duration lasts, absl::FunctionRef<void()> listening) {
  const absl::Time end = RealClock().Now() + lasts;
  ASSIGN_OR_RETURN(const Endpoint endpoint, Resolved(address));
  const Socket server(socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  setsockopt(server.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(server.fd(), endpoint.get(), endpoint.length) != 0 || listen(server.fd(), kBacklog) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot listen at ", address));
  listening();
  for (pollfd ready = {.fd = server.fd(), .events = POLLIN, .revents = 0};
       Uninterrupted([&] { return poll(&ready, 1, MillisecondsUntil(end)); }) > 0;)
    Socket(accept4(server.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  return absl::OkStatus();
}

// The kernel sends a connection's first packet again only after a second: one that is lost must not make a host
// unreachable.
std::vector<Unreached> DialForReach(const std::vector<std::string>& addresses, absl::Duration patience) {
  const absl::Time begin = RealClock().Now();
  std::vector<Dialled> all;
  for (const std::string& address : addresses) all.push_back({.unreached = {.address = address, .why = ""}});
  for (const absl::Time until : {begin + patience / 2, begin + patience}) {
    for (Dialled& one : all)
      if (!one.done) Dial(one);
    while (AwaitSome(all, until)) {
    }
  }
  std::vector<Unreached> unreached;
  for (Dialled& one : all) {
    if (!one.done) one.unreached.why = absl::StrCat("no answer within ", absl::FormatDuration(patience));
    if (!one.unreached.why.empty()) unreached.push_back(std::move(one.unreached));
  }
  return unreached;
}

std::string OwnAddresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> freed(all, freeifaddrs);
  std::vector<std::string> texts;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 || IsLoopback(*one->ifa_addr)) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Endpoint endpoint;
    endpoint.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&endpoint.storage, one->ifa_addr, endpoint.length);
    const absl::StatusOr<TcpAddress> address = ParseTcpAddress(endpoint.ToString());
    if (address.ok()) texts.push_back(absl::StrCat(address->host, " (", one->ifa_name, ")"));
  }
  return absl::StrJoin(texts, ", ");
}

}  // namespace muster
