// The client's end of the simulated transport. See simulated_transport.h.
#pragma once

#include <deque>
#include <string>

#include "absl/status/statusor.h"
#include "muster/sim/simulated_network.h"
#include "muster/transport/backoff.h"
#include "muster/transport/call_table.h"
#include "muster/transport/channel.h"

namespace muster {

class SimulatedChannel final : public Channel {
 public:
  SimulatedChannel(SimulatedNetwork& network, SimulatedThread& thread, std::string address, uint64_t seed);
  ~SimulatedChannel() override;

  CallId Call(const Request& request, ReplyCallback done) override;
  void Cancel(CallId call) override;
  const std::string& peer() const override { return address_; }
  Stats stats() const override { return stats_; }

  // Called by the network on this channel's loop.
  void OnConnected(const SimulatedConnection* connection);
  void OnBroken(const SimulatedConnection* connection);
  void OnReply(const SimulatedConnection* connection, uint64_t id, absl::StatusOr<std::string> control, ByteSpan bulk);

 private:
  void Connect();
  void SendWaiting();
  void Send(uint64_t id, CallTable::Call& call);
  void OnExpired(uint64_t id);

  SimulatedNetwork& network_;
  SimulatedThread& thread_;
  const std::string address_;
  SimulatedNetwork::Connection connection_;  // null before the first attempt
  bool connected_ = false;
  Backoff backoff_;
  bool retry_pending_ = false;
  EventLoop::TimerId retry_{};
  std::string trouble_ = "no attempt was made yet";  // why there is no connection
  std::deque<uint64_t> waiting_;                     // for a connection; may contain calls that have ended
  Stats stats_;
  CallTable calls_;  // last: its destructor calls back
};

}  // namespace muster
