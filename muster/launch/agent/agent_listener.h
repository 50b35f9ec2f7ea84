// Where agents that connect to their supervisor over TCP arrive: listens, reads each one's greeting (rendezvous.h), and
// keeps the newest connection of each host until it is wanted. A greeting without its host's key is turned away; only
// the handshake shows for certain who is at the other end. For engines whose hosts reach the supervisor. Used by the
// loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/net/free_ports.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/transport/io/socket.h"

namespace muster {

class AgentListener {
 public:
  // Called from the loop, or from Want: a connection of a host that was wanted; `rest` is what was read after its
  // greeting. The socket doesn't block.
  using Arrived = std::function<void(const std::string& host, Socket socket, const std::string& rest)>;

  // Listens on all addresses of this machine, on a port of `ports`; nullopt: on any. `secret`: the rendezvous'. Borrows
  // `loop` and `clock`, which must outlive it.
  static absl::StatusOr<std::unique_ptr<AgentListener>> Listen(std::set<std::string> hosts, std::string secret,
                                                               FdLoop& loop, const Clock& clock, Arrived arrived,
                                                               const std::optional<PortRange>& ports = std::nullopt);
  ~AgentListener();
  AgentListener(const AgentListener&) = delete;
  AgentListener& operator=(const AgentListener&) = delete;

  uint16_t port() const { return port_; }
  // Gives the next connection of the host, once.
  void Want(const std::string& host);

  absl::Time deadline() const;
  // Closes what hasn't greeted in time.
  void OnTime();

 private:
  // That many may arrive that haven't greeted; a further one closes the oldest.
  static constexpr size_t kMostArriving = 64;
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  struct Arriving {
    Socket socket;
    std::string received;
    absl::Time until;
  };

  AgentListener(std::set<std::string> hosts, std::string secret, FdLoop& loop, const Clock& clock, Arrived arrived);
  void Accept();
  void Read(std::list<Arriving>::iterator one);
  void Close(std::list<Arriving>::iterator one);
  void Give(const std::string& host);

  // Constant after construction.
  const std::set<std::string> hosts_;
  const std::string secret_;
  FdLoop& loop_;
  const Clock& clock_;
  const Arrived arrived_;

  std::optional<FreePorts> held_;  // a port of a range
  Socket listening_;
  uint16_t port_ = 0;
  absl::Time accept_again_ = absl::InfiniteFuture();  // this process had no descriptor left
  std::list<Arriving> arriving_;                      // oldest first
  std::map<std::string, Arriving> waiting_;           // by host: greeted, and not wanted yet
  std::set<std::string> wanted_;
};

}  // namespace muster
