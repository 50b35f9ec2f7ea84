// The client's end of the loopback transport. See loopback_transport.h.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "muster/transport/backoff.h"
#include "muster/transport/call_table.h"
#include "muster/transport/channel.h"
#include "muster/transport/loopback/loopback_link.h"
#include "muster/transport/loopback/loopback_network.h"
#include "muster/transport/loopback/loopback_transport.h"
#include "muster/transport/traffic_counts.h"

namespace muster {

class LoopbackChannel final : public Channel {
 public:
  LoopbackChannel(LoopbackNetwork& network, EventLoop& loop, std::string address, HandshakeIdentity identity,
                  const LoopbackOptions& options);
  ~LoopbackChannel() override;

  CallId Call(const Request& request, ReplyCallback done) override;
  void Cancel(CallId call) override;
  const std::string& peer() const override { return address_; }
  Stats stats() const override { return counts_.Read(); }

  // Called by the server, on this channel's loop.
  void OnReply(const LoopbackLink* link, uint64_t id, absl::StatusOr<Reply> reply);
  void OnBroken(const LoopbackLink* link);

 private:
  void Connect();
  void SendWaiting();
  void Send(uint64_t id, CallTable::Call& call);
  void Abandon(uint64_t id, absl::Status status);
  void OnExpired(uint64_t id);

  LoopbackNetwork& network_;
  EventLoop& loop_;
  const std::string address_;
  const HandshakeIdentity identity_;
  const LoopbackOptions options_;
  const std::shared_ptr<LoopbackClient> self_;

  std::shared_ptr<LoopbackLink> link_;  // null while not connected
  Backoff backoff_;
  bool retry_pending_ = false;
  EventLoop::TimerId retry_{};
  std::string trouble_ = "no attempt was made yet";  // why there is no connection
  std::deque<uint64_t> waiting_;                     // calls that wait for a connection; some may have ended
  absl::flat_hash_map<uint64_t, std::shared_ptr<LoopbackMemory>> memory_;  // of the sent calls
  TrafficCounts counts_;
  CallTable calls_;  // last: its destructor calls back
};

}  // namespace muster
