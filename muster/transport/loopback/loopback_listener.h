// The serving end of the loopback transport. See loopback_transport.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "muster/transport/listener.h"
#include "muster/transport/loopback/loopback_link.h"
#include "muster/transport/loopback/loopback_network.h"

namespace muster {

// Makes the checks of the TCP handshake, without its bytes.
absl::Status CheckLoopbackPeer(const HandshakeIdentity& client, const HandshakeIdentity& server);

class LoopbackListener final : public Listener {
 public:
  LoopbackListener(LoopbackNetwork& network, EventLoop& loop, RequestHandler& handler, HandshakeIdentity identity);
  ~LoopbackListener() override;
  absl::Status Start(const std::string& address);  // once, before anything else

  const std::string& address() const override { return address_; }
  Stats stats() const override { return stats_; }

  // Called by the clients, on this listener's loop.
  void OnOpen(const std::shared_ptr<LoopbackLink>& link);
  void OnClose(const LoopbackLink* link);
  void OnRefused() { ++stats_.dropped_handshake; }
  void OnRequest(const LoopbackLink* link, LoopbackMessage message);

  // Called by the responders, on this listener's loop: copies the bulk into the caller's memory and tells its channel.
  void Answer(const std::shared_ptr<LoopbackLink>& link, uint64_t id, LoopbackMemory& memory, absl::Status status,
              absl::string_view control, absl::Span<const ByteSpan> bulk);

  // Tells the client of `link` that the connection has ended.
  static void TellBroken(const std::shared_ptr<LoopbackLink>& link);

 private:
  struct Connection {
    ConnectionId id{};
    std::shared_ptr<LoopbackLink> link;
  };

  absl::StatusOr<std::unique_ptr<BulkTarget>> ReceiveBulk(const IncomingRequest& request,
                                                          const LoopbackMessage& message);
  void Cut(const LoopbackLink* link, const IncomingRequest& request, const LoopbackMessage& message);

  LoopbackNetwork& network_;
  EventLoop& loop_;
  RequestHandler& handler_;
  const std::shared_ptr<LoopbackServer> self_;
  std::string address_;  // constant after Start
  uint64_t next_connection_ = 1;
  absl::flat_hash_map<const LoopbackLink*, Connection> connections_;
  Stats stats_;
};

}  // namespace muster
