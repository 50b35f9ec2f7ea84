#include "muster/launch/free_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"

namespace muster {
namespace {

// Below the range from which Linux takes the ports of outgoing connections (32768 and up, unless configured otherwise):
// no connection that the run's own first processes make can take a port between its release and its server's bind.
constexpr uint16_t kFirstPort = 20000;
constexpr uint16_t kPorts = 12768;
// Tries there before taking whatever the system gives.
constexpr int kTries = 64;

uint16_t RandomPort() {
  uint32_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) return 0;
  return kFirstPort + random % kPorts;
}

// The port bound, 0 for failure (see errno). `port` 0 lets the system choose.
uint16_t Bind(int fd, uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) return 0;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.sin_port);
}

}  // namespace

absl::StatusOr<FreePorts> FreePorts::Reserve(int count) {
  FreePorts ports;
  while (ports.held_.size() < static_cast<size_t>(count)) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return absl::ErrnoToStatus(errno, "cannot make a socket to find a free port");
    // Without SO_REUSEADDR: a port in TIME_WAIT, or held by another launcher, is then refused here and another one
    // tried.
    uint16_t port = 0;
    for (int i = 0; i < kTries && port == 0; ++i) port = Bind(fd, RandomPort());
    if (port == 0) port = Bind(fd, 0);
    if (port == 0) {
      const int error = errno;
      close(fd);
      return absl::ErrnoToStatus(error, "no free TCP port on 127.0.0.1");
    }
    ports.held_.push_back({port, fd});
  }
  return ports;
}

FreePorts::~FreePorts() {
  for (size_t i = 0; i < held_.size(); ++i) Release(i);
}

void FreePorts::Release(size_t index) {
  const int fd = std::exchange(held_[index].fd, -1);
  if (fd >= 0) close(fd);
}

}  // namespace muster
