// The channel of a FaultTransport: delays, repeats, cuts or loses requests and replies according to its script.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "muster/transport/call_table.h"
#include "muster/transport/channel.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/fault/fault_script.h"

namespace muster {

class FaultChannel final : public Channel {
 public:
  FaultChannel(EventLoop& loop, std::unique_ptr<Channel> inner, FaultScript& script);
  ~FaultChannel() override;

  CallId Call(const Request& request, ReplyCallback done) override;
  void Cancel(CallId call) override;
  const std::string& peer() const override { return inner_->peer(); }
  Stats stats() const override { return inner_->stats(); }

 private:
  // The state of a call that the CallTable doesn't have.
  struct State {
    std::optional<Fault> fault;
    std::optional<CallId> inner;  // while the inner channel has the call, and with it the caller's memory
    EventLoop::TimerId timer{};   // ends the delay of the request or the reply
  };

  bool Meets(uint64_t id, FaultKind kind) const;
  void Forward(uint64_t id);
  void SendAgain(const Request& request);
  void OnInner(uint64_t id, absl::StatusOr<Reply> result);
  void OnExpired(uint64_t id);
  void Finish(uint64_t id, absl::StatusOr<Reply> result);
  void FinishLater(uint64_t id, absl::Status status);

  EventLoop& loop_;
  FaultScript& script_;
  std::unique_ptr<Channel> inner_;
  absl::flat_hash_map<uint64_t, State> states_;
  CallTable calls_;  // last: its destructor calls back
};

}  // namespace muster
