#include "muster/launch/agent/agent_listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "muster/base/net/accept_again.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/agent/rendezvous.h"
#include "muster/transport/io/tcp_address.h"

namespace muster {
namespace {

constexpr int kArrivalBacklog = 1024;  // all agents of a large run may come at once

// IPv6 sockets take IPv4's connections, too, where the machine has IPv6.
// `port` 0: any.
Socket BindPort(uint16_t port) {
  Socket both(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int no = 0, beside = port != 0 ? 1 : 0;
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(port);
  if (both.valid() && setsockopt(both.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0 &&
      setsockopt(both.fd(), SOL_SOCKET, SO_REUSEADDR, &beside, sizeof beside) == 0 &&
      bind(both.fd(), reinterpret_cast<const sockaddr*>(&any6), sizeof any6) == 0)
    return both;
  Socket one(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  if (one.valid()) setsockopt(one.fd(), SOL_SOCKET, SO_REUSEADDR, &beside, sizeof beside);
  if (one.valid() && bind(one.fd(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) one.Close();
  return one;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AgentListener>> AgentListener::Listen(std::set<std::string> hosts, std::string secret,
                                                                     FdLoop& loop, const Clock& clock, Arrived arrived,
                                                                     const std::optional<PortRange>& ports) {
  std::unique_ptr<AgentListener> listener(
      new AgentListener(std::move(hosts), std::move(secret), loop, clock, std::move(arrived)));
  if (ports.has_value()) {
    ASSIGN_OR_RETURN(FreePorts held, FreePorts::Reserve(1, ports, kEveryAddress));
    listener->held_.emplace(std::move(held));
  }
  listener->listening_ = BindPort(listener->held_.has_value() ? listener->held_->port(0) : 0);
  const int fd = listener->listening_.fd();
  if (fd < 0 || listen(fd, kArrivalBacklog) != 0) return absl::ErrnoToStatus(errno, "cannot listen for agents");
  listener->port_ = static_cast<uint16_t>(LocalEndpoint(fd).port());
  loop.Watch(fd, POLLIN, [one = listener.get()](short) { one->Accept(); });
  return listener;
}

AgentListener::AgentListener(std::set<std::string> hosts, std::string secret, FdLoop& loop, const Clock& clock,
                             Arrived arrived)
    : hosts_(std::move(hosts)), secret_(std::move(secret)), loop_(loop), clock_(clock), arrived_(std::move(arrived)) {}

AgentListener::~AgentListener() {
  if (listening_.valid()) loop_.Forget(listening_.fd());
  while (!arriving_.empty()) Close(arriving_.begin());
}

void AgentListener::Accept() {
  while (true) {
    Socket socket(accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid() && ShouldAcceptLater(errno)) {
      loop_.SetEvents(listening_.fd(), 0);
      accept_again_ = clock_.Now() + kAcceptAgainAfter;
    }
    if (!socket.valid()) return;
    const int yes = 1;
    setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (arriving_.size() >= kMostArriving) Close(arriving_.begin());
    const int fd = socket.fd();
    const auto one = arriving_.insert(
        arriving_.end(), Arriving{.socket = std::move(socket), .received = "", .until = clock_.Now() + kPatience});
    loop_.Watch(fd, POLLIN, [this, one](short) { Read(one); });
    Read(one);  // at once, so that of many agents only those that say nothing count as arriving
  }
}

void AgentListener::Close(std::list<Arriving>::iterator one) {
  loop_.Forget(one->socket.fd());
  arriving_.erase(one);
}

void AgentListener::Read(std::list<Arriving>::iterator one) {
  char piece[512];
  const ssize_t got = Uninterrupted([&] { return read(one->socket.fd(), piece, sizeof piece); });
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) return Close(one);
  one->received.append(piece, static_cast<size_t>(got));
  const absl::StatusOr<Greeting> greeting = ParseGreeting(one->received);
  if (greeting.ok() && greeting->bytes == 0) return;
  if (!greeting.ok() || !hosts_.contains(greeting->host)) return Close(one);
  if (!IsProven(*greeting, KeyOfHost(secret_, greeting->host))) return Close(one);
  loop_.Forget(one->socket.fd());
  Arriving arrived = std::move(*one);
  arriving_.erase(one);
  arrived.received.erase(0, greeting->bytes);
  waiting_[greeting->host] = std::move(arrived);
  if (wanted_.contains(greeting->host)) Give(greeting->host);
}

void AgentListener::Want(const std::string& host) {
  wanted_.insert(host);
  if (waiting_.contains(host)) Give(host);
}

void AgentListener::Give(const std::string& host) {
  wanted_.erase(host);
  Arriving given = std::move(waiting_.extract(host).mapped());
  arrived_(host, std::move(given.socket), given.received);
}

absl::Time AgentListener::deadline() const {
  return std::min(accept_again_, arriving_.empty() ? absl::InfiniteFuture() : arriving_.front().until);
}

void AgentListener::OnTime() {
  const absl::Time now = clock_.Now();
  if (now >= accept_again_) {
    accept_again_ = absl::InfiniteFuture();
    loop_.SetEvents(listening_.fd(), POLLIN);
  }
  while (!arriving_.empty() && now >= arriving_.front().until) Close(arriving_.begin());
}

}  // namespace muster
