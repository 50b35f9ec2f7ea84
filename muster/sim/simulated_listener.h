// The serving end of the simulated transport. See simulated_transport.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/sim/simulated_network.h"
#include "muster/transport/listener.h"

namespace muster {

// A request on its way. Its control message arrives first, then its bulk.
struct SimulatedMessage {
  uint64_t id = 0;  // the client's number
  IncomingRequest request;
  std::vector<std::byte> bulk;
};

class SimulatedListener final : public Listener {
 public:
  SimulatedListener(SimulatedNetwork& network, SimulatedThread& thread, RequestHandler& handler, std::string address)
      : network_(network), thread_(thread), handler_(handler), address_(std::move(address)) {}
  ~SimulatedListener() override;

  const std::string& address() const override { return address_; }
  Stats stats() const override { return stats_; }
  SimulatedThread& thread() { return thread_; }

  // Called by the network on this listener's loop.
  void OnOpen(const SimulatedNetwork::Connection& connection);
  void OnClose(SimulatedConnection& connection);
  void OnControl(const SimulatedNetwork::Connection& connection, const std::shared_ptr<SimulatedMessage>& message);
  void OnBulk(const SimulatedNetwork::Connection& connection, SimulatedMessage& message);
  // Called by the responders.
  void Answer(const SimulatedNetwork::Connection& connection, uint64_t id, absl::StatusOr<std::string> control,
              absl::Span<const ByteSpan> bulk);

 private:
  // An open connection: the targets of requests whose bulk is on its way, by request number.
  struct Peer {
    SimulatedNetwork::Connection connection;
    std::map<uint64_t, std::unique_ptr<BulkTarget>> targets;
  };

  void HandOn(const SimulatedNetwork::Connection& connection, SimulatedMessage& message,
              std::unique_ptr<BulkTarget> target);

  SimulatedNetwork& network_;
  SimulatedThread& thread_;
  RequestHandler& handler_;
  const std::string address_;
  uint64_t next_connection_ = 1;
  std::map<ConnectionId, Peer> peers_;
  Stats stats_;
};

}  // namespace muster
