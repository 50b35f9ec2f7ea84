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

class LoopbackChannel : public Channel {
 public:
  LoopbackChannel(LoopbackNetwork& network, EventLoop& loop, std::string address, LoopbackParty party,
                  const LoopbackOptions& options);
  ~LoopbackChannel() override;

  CallId Call(const Request& request, ReplyCallback done) override;
  void Cancel(CallId call) override;
  const std::string& peer() const override { return address_; }
  std::string trouble() const override { return connected_ ? "" : trouble_; }
  Stats stats() const override { return counts_.Read(); }

  // From the network, on this channel's loop, about the connection that it has.
  void OnConnected();
  void OnRefused(const absl::Status& status);  // the other side refuses this process
  void OnReply(uint64_t id, absl::StatusOr<Reply> reply);
  void OnBroken();  // also: nobody is there

 private:
  void Connect();
  void SendWaiting();
  void Send(uint64_t id, CallTable::Call& call);
  void Abandon(uint64_t id, absl::Status status);
  void OnExpired(uint64_t id);
  void EndMessage(uint64_t id);
  void LeaveLink();

  LoopbackNetwork& network_;
  EventLoop& loop_;
  const std::string address_;
  const LoopbackOptions options_;
  const std::shared_ptr<LoopbackClient> self_;

  std::shared_ptr<LoopbackLink> link_;  // null while no connection was asked for
  bool connected_ = false;
  Backoff backoff_;
  bool retry_pending_ = false;
  EventLoop::TimerId retry_{};
  std::string trouble_ = "there is no answer yet";  // why there is no connection
  std::deque<uint64_t> waiting_;                    // for a connection; may hold calls that have ended
  absl::flat_hash_map<uint64_t, std::shared_ptr<LoopbackMessage>> sent_;
  TrafficCounts counts_;
  CallTable calls_;  // last: its destructor calls back
};

}  // namespace muster
