#include "muster/base/net/free_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
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

// Returns the descriptor that holds the port's lock; -1 if another process holds it.
int Lock(uint16_t port) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const AbstractAddress name(absl::StrCat("muster-port-", port));
  if (fd < 0 || bind(fd, name.get(), name.length) == 0) return fd;
  close(fd);
  return -1;
}

// Returns the bound port, or 0 for failure (see errno). `port` 0 lets the system choose.
uint16_t Bind(int fd, uint16_t port, bool as_server) {
  const int reuse = as_server ? 1 : 0;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) != 0) return 0;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) return 0;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  // Set after the bind, which thus fails where another program holds the port in the same way.
  const int beside = 1;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &beside, sizeof beside) != 0) return 0;
  return ntohs(address.sin_port);
}

}  // namespace

absl::StatusOr<FreePorts> FreePorts::Reserve(int count, const PortRange& range) {
  FreePorts ports;
  for (int tries = 0; ports.held_.size() < static_cast<size_t>(count); ++tries) {
    const absl::StatusOr<Held> held = HoldOne(tries < kTries ? RandomPort(range) : 0, /*as_server=*/false);
    if (held.ok()) ports.held_.push_back(*held);
    if (held.ok()) tries = 0;
    if (tries >= 2 * kTries) return held.status();
  }
  return ports;
}

absl::StatusOr<FreePorts> FreePorts::Take(const PortRange& range) {
  FreePorts ports;
  for (int i = 0; i < range.count; ++i) {
    const int port = range.first + i;
    const absl::StatusOr<Held> held = HoldOne(static_cast<uint16_t>(port), /*as_server=*/true);
    const bool in_use =
        held.status().code() == absl::ErrnoToStatusCode(EADDRINUSE) || absl::IsResourceExhausted(held.status());
    if (!held.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("port ", port, in_use ? " is in use" : absl::StrCat(": ", held.status().message())));
    ports.held_.push_back(*held);
  }
  return ports;
}

absl::StatusOr<FreePorts::Held> FreePorts::HoldOne(uint16_t port, bool as_server) {
  // Locks the port before binding it: a port that another run's server is about to bind must not be taken even for a
  // moment.
  int lock_fd = port != 0 ? Lock(port) : -1;
  if (port != 0 && lock_fd < 0) return absl::ResourceExhaustedError("the port belongs to another run");
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // If any port will do, doesn't set SO_REUSEADDR: a port in TIME_WAIT is then refused here, and another one is tried.
  port = fd >= 0 ? Bind(fd, port, as_server) : 0;
  const int error = port != 0 ? EADDRINUSE : errno;
  if (port != 0 && lock_fd < 0) lock_fd = Lock(port);
  if (port != 0 && lock_fd >= 0) return Held{port, fd, lock_fd};
  if (fd >= 0) close(fd);
  if (lock_fd >= 0) close(lock_fd);
  return absl::ErrnoToStatus(error, "no free TCP port on 127.0.0.1");
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
