// Ports of this machine that nobody uses, for the servers of a run that are about to be started. A port is held (bound,
// not listened on) until just before its server starts. From then on, also while a server that was killed is being
// started again, no other FreePorts of the machine gives it away, for as long as this one lives: each port has a lock,
// a name in the abstract namespace of unix sockets, which is gone with its process, however that ends. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// From which ports are taken as long as there are any. By default below the range from which Linux takes those of
// outgoing connections (32768 and up, unless configured otherwise): no connection that the run's own first processes
// make can take a port between its release and its server's bind.
struct PortRange {
  uint16_t first = 20000;
  uint16_t count = 12768;
};

class FreePorts {
 public:
  // `count` different TCP ports on 127.0.0.1. ResourceExhausted if there are none left.
  static absl::StatusOr<FreePorts> Reserve(int count, const PortRange& range = {});
  // All of `range`, as servers could have them. InvalidArgument names the first that is in use.
  static absl::StatusOr<FreePorts> Take(const PortRange& range);
  ~FreePorts();
  FreePorts(FreePorts&& other) noexcept = default;
  FreePorts& operator=(FreePorts&&) = delete;

  uint16_t port(size_t index) const { return held_[index].port; }
  // Lets go of one, for its server to bind. Once.
  void Release(size_t index);

 private:
  struct Held {
    uint16_t port;
    int fd;  // -1 once released
    int lock_fd;
  };

  FreePorts() = default;
  // 0: whichever the system gives. `as_server`: one that was in use until now will do.
  static absl::StatusOr<Held> HoldOne(uint16_t port, bool as_server);

  std::vector<Held> held_;
};

}  // namespace muster
