// The serving end of the loopback transport. See loopback_transport.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "muster/transport/listener.h"
#include "muster/transport/loopback/loopback_link.h"
#include "muster/transport/loopback/loopback_network.h"

namespace muster {

class LoopbackListener final : public Listener {
 public:
  LoopbackListener(LoopbackNetwork& network, EventLoop& loop, RequestHandler& handler, LoopbackParty party);
  ~LoopbackListener() override;
  absl::Status Start(const std::string& address);  // once, before anything else

  const std::string& address() const override { return address_; }
  Stats stats() const override { return stats_; }

  // From the network, on this listener's loop.
  void OnOpen(const LoopbackNetwork::Link& link);
  void OnClose(LoopbackLink& link);
  // A request arrives: its control part, then the first `bytes` of its bulk; whole, it is handled.
  void OnControl(const LoopbackNetwork::Link& link, const std::shared_ptr<LoopbackMessage>& message);
  void OnBulk(const LoopbackNetwork::Link& link, const std::shared_ptr<LoopbackMessage>& message, size_t bytes);

  // From the responders, on this listener's loop.
  void Answer(const LoopbackNetwork::Link& link, const std::shared_ptr<LoopbackMessage>& message, absl::Status status,
              absl::string_view control, absl::Span<const ByteSpan> bulk);

 private:
  struct Connection {
    ConnectionId id{};
    LoopbackNetwork::Link link;
    std::map<uint64_t, std::unique_ptr<BulkTarget>> targets;  // of requests whose bulk is on its way
  };

  void HandOn(const LoopbackNetwork::Link& link, const std::shared_ptr<LoopbackMessage>& message,
              std::unique_ptr<BulkTarget> target);

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
