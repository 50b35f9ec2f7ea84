// Reserves unused ports of this machine for the servers of a run that is about to start. A port is held (bound, not
// listened on) as long as this object lives, or until Release. Its server binds it beside this reservation, which Linux
// permits where both sockets have SO_REUSEADDR, as nearly every server sets it, and only one of them listens. The
// kernel gives a held port to nobody who asks for any port, and one bind without SO_REUSEADDR fails. Thus the port
// stays the run's own between two lives of its server.
//
// No other FreePorts on the machine hands out the same port, not even once it is released: each port has a lock, a name
// in the abstract namespace of unix sockets, which disappears with its process, however that ends. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/net/port_range.h"

namespace muster {

inline constexpr char kLoopbackAddress[] = "127.0.0.1";
// All addresses of this machine, IPv6 and IPv4.
inline constexpr char kEveryAddress[] = "::";

class FreePorts {
 public:
  // Reserves `count` different TCP ports on `address`, an IPv4 or IPv6 address in digits. Anything else, as a name or
  // an address that isn't one of this machine's own, means all of its addresses. `range`: the only ones that may be
  // chosen; nullopt: UsualPorts, while any are free. ResourceExhausted if not enough are free.
  static absl::StatusOr<FreePorts> Reserve(int count, const std::optional<PortRange>& range = std::nullopt,
                                           const std::string& address = kLoopbackAddress);
  // Reserves all ports of `range`, as servers could bind them. InvalidArgument names the first that is in use.
  static absl::StatusOr<FreePorts> Take(const PortRange& range, const std::string& address = kLoopbackAddress);
  // Takes over what descriptors() of a reservation of one port were, which another process has handed over: one or two.
  static FreePorts Of(const std::vector<int>& descriptors);
  ~FreePorts();
  FreePorts(FreePorts&& other) noexcept = default;
  FreePorts& operator=(FreePorts&&) = delete;

  uint16_t port(size_t index) const { return held_[index].port; }
  // What holds the ports and their locks; they stay this object's.
  std::vector<int> descriptors() const;
  // Releases one port, for a server that doesn't set SO_REUSEADDR. Has no effect on a released one.
  void Release(size_t index);

 private:
  struct Held {
    uint16_t port;
    int fd;  // -1 once released
    int lock_fd;
  };

  FreePorts() = default;
  static absl::StatusOr<FreePorts> ReserveWithin(int count, const PortRange& range, const std::string& address);
  // `port` 0: any port that the system gives. `as_server`: also accepts a port that was in use until now (TIME_WAIT).
  static absl::StatusOr<Held> HoldOne(const std::string& address, uint16_t port, bool as_server);

  std::vector<Held> held_;
};

}  // namespace muster
