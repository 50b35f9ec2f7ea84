// Requests to the ps of a job, and what all operations of a client share: who asks, how long an answer may take, what
// is said in the log meanwhile, and what ends a wait. A request is sent again, under its sequence number, when the
// connection breaks. What is requested, and what the answers mean, is up to StoreClient and the operations beside it.
//
// Lives on the transport's EventLoop and is used by the thread that drives it (TrafficStats: by any). Errors are those
// of StoreClient.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/store/calls/store_call.h"
#include "muster/store/calls/store_client_options.h"
#include "muster/store/messages/messages.h"
#include "muster/transport/transport.h"

namespace muster {

class PsCalls {
 public:
  // Borrows `transport` and `options`.
  PsCalls(Transport& transport, std::vector<std::string> addresses, const StoreClientOptions& options);

  int num_ps() const { return static_cast<int>(servers_.size()); }
  EventLoop& loop() const { return loop_; }
  const StoreClientOptions& options() const { return options_; }
  const std::vector<std::string>& addresses() const { return addresses_; }
  Channel::Stats TrafficStats(int ps) const { return servers_[ps].channel->stats(); }
  // Why there is no connection to that ps; empty if there is one.
  std::string Trouble(int ps) const { return servers_[ps].channel->trouble(); }

  // What that ps answered to the last Join. Without a ps_incarnation it has answered none, or is gone.
  JoinReply& joined(int ps) { return servers_[ps].joined; }
  const JoinReply& joined(int ps) const { return servers_[ps].joined; }
  Stamp MakeStamp(int ps, uint64_t sequence) const { return {joined(ps).client, options_.incarnation, sequence}; }

  std::string Name(int ps) const;                              // "ps:0 (host:port)"
  std::string Named(int ps, absl::string_view message) const;  // `message` after that name
  absl::Status Annotate(int ps, const absl::Status& status) const;

  // Sends the request, without a wait. Counts `unanswered` down when the answer is there, or the deadline has passed.
  void Send(StoreCall& call, absl::Time deadline, int& unanswered);
  // Withdraws a request that is in flight. Its answer is an error, and comes when the loop runs.
  void Cancel(const StoreCall& call);

  // Sends all requests at once and waits for the answers. `stoppable`: a stop that is requested ends the wait.
  [[nodiscard]] absl::Status Exchange(std::vector<StoreCall>& calls, absl::Time deadline, bool stoppable = false);
  // For requests that a gate may hold back: waits for gate_patience, but for an unreachable ps only for `patience`.
  [[nodiscard]] absl::Status ExchangeHeldBack(std::vector<StoreCall>& calls);
  [[nodiscard]] absl::Status ExchangeOne(StoreCall& call, absl::Duration patience, bool stoppable = false);
  // Exchange within the patience. DataLoss: an answer's bulk hasn't the length of `into`.
  [[nodiscard]] absl::Status Ask(std::vector<StoreCall>& calls);
  // For a request that moves or writes the whole model: waits for transfer_patience.
  [[nodiscard]] absl::Status Transfer(StoreCall& call);
  absl::StatusOr<std::string> Status(int ps);  // its status page, JSON

 private:
  friend class ShutdownWait;
  struct Server {
    std::unique_ptr<Channel> channel;
    JoinReply joined;
  };

  [[nodiscard]] absl::Status AskWhoIsSilent(const std::vector<StoreCall>& calls);
  // Withdraws what is in flight and waits until its memory is free again.
  void Abandon(std::vector<StoreCall>& calls, int& unanswered);

  EventLoop& loop_;
  const StoreClientOptions& options_;
  const std::vector<std::string> addresses_;
  std::vector<Server> servers_;
  Request request_;  // as a channel takes it; its memory is kept
};

}  // namespace muster
