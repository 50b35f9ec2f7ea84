#include "muster/base/net/free_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/net/abstract_address.h"

namespace muster {
namespace {

// How many random ports of the range to try before taking any port from the system.
constexpr int kTries = 64;

uint16_t RandomPort(const PortRange& range) {
  uint32_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) return 0;
  return range.first + random % range.count;
}

bool IsInUse(const absl::Status& status) {
  return status.code() == absl::ErrnoToStatusCode(EADDRINUSE) || absl::IsResourceExhausted(status);
}

// Returns the descriptor that holds the port's lock; -1 if another process holds it.
int Lock(uint16_t port) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const AbstractAddress name(absl::StrCat("muster-port-", port));
  if (fd < 0 || bind(fd, name.get(), name.length) == 0) return fd;
  close(fd);
  return -1;
}

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;  // 0: it is no address
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress AddressOf(const std::string& digits, uint16_t port) {
  SocketAddress address;
  auto* const ipv4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const ipv6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET, digits.c_str(), &ipv4->sin_addr) == 1) {
    ipv4->sin_family = AF_INET;
    ipv4->sin_port = htons(port);
    address.size = sizeof(sockaddr_in);
  } else if (inet_pton(AF_INET6, digits.c_str(), &ipv6->sin6_addr) == 1) {
    ipv6->sin6_family = AF_INET6;
    ipv6->sin6_port = htons(port);
    address.size = sizeof(sockaddr_in6);
  }
  return address;
}

// The port has the same place in both kinds of addresses.
uint16_t PortOf(SocketAddress& address) { return ntohs(reinterpret_cast<const sockaddr_in*>(address.get())->sin_port); }

// Returns the bound port, or 0 for failure (see errno).
uint16_t Bind(int fd, SocketAddress address, bool as_server) {
  const int reuse = as_server ? 1 : 0;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) != 0) return 0;
  const int ipv6_only = 0;
  if (address.storage.ss_family == AF_INET6 &&
      setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &ipv6_only, sizeof ipv6_only) != 0)
    return 0;
  if (bind(fd, address.get(), address.size) != 0) return 0;
  if (getsockname(fd, address.get(), &address.size) != 0) return 0;
  // Set after the bind, which thus fails where another program holds the port in the same way.
  const int beside = 1;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &beside, sizeof beside) != 0) return 0;
  return PortOf(address);
}

// What came of an attempt to bind.
struct Bound {
  int fd = -1;
  uint16_t port = 0;  // 0: failure
  int error = EADDRNOTAVAIL;
};

// `port` 0 lets the system choose.
Bound BindOne(const std::string& digits, uint16_t port, bool as_server) {
  const SocketAddress address = AddressOf(digits, port);
  if (address.size == 0) return {};
  Bound bound{.fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (bound.fd >= 0) bound.port = Bind(bound.fd, address, as_server);
  bound.error = bound.port != 0 ? EADDRINUSE : errno;
  if (bound.fd >= 0 && bound.port == 0) close(std::exchange(bound.fd, -1));
  return bound;
}

// Returns whether the machine has no such address. EINVAL: a link-local one, which needs a name beside its digits.
bool HasNoSuchAddress(int error) {
  return error == EADDRNOTAVAIL || error == EAFNOSUPPORT || error == EPROTONOSUPPORT || error == EINVAL;
}

Bound BindSomewhere(const std::string& address, uint16_t port, bool as_server) {
  Bound bound;
  for (const std::string& digits : {address, std::string(kEveryAddress), std::string("0.0.0.0")}) {
    bound = BindOne(digits, port, as_server);
    if (bound.port != 0 || !HasNoSuchAddress(bound.error)) break;
  }
  return bound;
}

}  // namespace

absl::StatusOr<FreePorts> FreePorts::Reserve(int count, const std::optional<PortRange>& range,
                                             const std::string& address) {
  if (range.has_value()) return ReserveWithin(count, *range, address);
  const PortRange usual = UsualPorts();
  FreePorts ports;
  for (int tries = 0; ports.held_.size() < static_cast<size_t>(count); ++tries) {
    const absl::StatusOr<Held> held = HoldOne(address, tries < kTries ? RandomPort(usual) : 0, /*as_server=*/false);
    if (held.ok()) ports.held_.push_back(*held);
    if (held.ok()) tries = 0;
    if (tries >= 2 * kTries) return held.status();
  }
  return ports;
}

// Begins anywhere, so that two runs seldom try the same ones. Those that were in use until now (TIME_WAIT) come last.
absl::StatusOr<FreePorts> FreePorts::ReserveWithin(int count, const PortRange& range, const std::string& address) {
  FreePorts ports;
  const int begin = std::max(0, RandomPort(range) - range.first);
  for (int i = 0; i < 2 * range.count && ports.held_.size() < static_cast<size_t>(count); ++i) {
    const auto port = static_cast<uint16_t>(range.first + (begin + i) % range.count);
    const absl::StatusOr<Held> held = HoldOne(address, port, /*as_server=*/i >= range.count);
    if (!held.ok() && !IsInUse(held.status())) return held.status();
    if (held.ok()) ports.held_.push_back(*held);
  }
  if (ports.held_.size() == static_cast<size_t>(count)) return ports;
  return absl::ResourceExhaustedError(absl::StrCat(
      ports.held_.empty() ? "no port" : "too few ports", " of ", range.ToString(),
      ports.held_.empty() ? " is free" : absl::StrCat(" are free (", ports.held_.size(), " of ", count, ")"),
      "; accepted is a wider range"));
}

absl::StatusOr<FreePorts> FreePorts::Take(const PortRange& range, const std::string& address) {
  FreePorts ports;
  for (int i = 0; i < range.count; ++i) {
    const int port = range.first + i;
    const absl::StatusOr<Held> held = HoldOne(address, static_cast<uint16_t>(port), /*as_server=*/true);
    if (!held.ok())
      return absl::InvalidArgumentError(absl::StrCat(
          "port ", port, IsInUse(held.status()) ? " is in use" : absl::StrCat(": ", held.status().message())));
    ports.held_.push_back(*held);
  }
  return ports;
}

absl::StatusOr<FreePorts::Held> FreePorts::HoldOne(const std::string& address, uint16_t port, bool as_server) {
  // Locks the port before binding it: a port that another run's server is about to bind must not be taken even for a
  // moment.
  int lock_fd = port != 0 ? Lock(port) : -1;
  if (port != 0 && lock_fd < 0) return absl::ResourceExhaustedError("the port belongs to another run");
  // If any port will do, doesn't set SO_REUSEADDR: a port in TIME_WAIT is then refused here, and another one is tried.
  const Bound bound = BindSomewhere(address, port, as_server);
  if (bound.port != 0 && lock_fd < 0) lock_fd = Lock(bound.port);
  if (bound.port != 0 && lock_fd >= 0) return Held{bound.port, bound.fd, lock_fd};
  if (bound.fd >= 0) close(bound.fd);
  if (lock_fd >= 0) close(lock_fd);
  return absl::ErrnoToStatus(bound.error, absl::StrCat("no free TCP port on ", address));
}

FreePorts FreePorts::Of(const std::vector<int>& descriptors) {
  if (descriptors.empty()) return FreePorts();
  Held held{.port = 0, .fd = descriptors.size() == 2 ? descriptors[0] : -1, .lock_fd = descriptors.back()};
  SocketAddress address{.size = sizeof(sockaddr_storage)};
  if (held.fd >= 0 && getsockname(held.fd, address.get(), &address.size) == 0) held.port = PortOf(address);
  FreePorts ports;
  ports.held_.push_back(held);
  return ports;
}

std::vector<int> FreePorts::descriptors() const {
  std::vector<int> descriptors;
  for (const Held& held : held_) {
    if (held.fd >= 0) descriptors.push_back(held.fd);
    descriptors.push_back(held.lock_fd);
  }
  return descriptors;
}

FreePorts::~FreePorts() {
  for (size_t i = 0; i < held_.size(); ++i) {
    Release(i);
    close(held_[i].lock_fd);
  }
}

void FreePorts::Release(size_t index) {
  const int fd = std::exchange(held_[index].fd, -1);
  if (fd >= 0) close(fd);
}

}  // namespace muster
