// The network of a simulated world: how long a message takes, which links are cut, what is lost. A connection keeps its
// messages in order and loses none of them while it lasts, as TCP; different connections overtake one another. A
// connection that breaks is seen by its two ends at different times: until the server has seen it, requests that were
// on their way still arrive, though the client has been told of the break and sends them again elsewhere. A request's
// control part and its bulk arrive one after the other, and what was sent arrives even if its sender is gone.
//
// Faults come by chance (NetworkOptions, drawn from the seed), at a time (Cut, Part, Close) and by count (FaultScript,
// for the requests of one SimulatedTransport).
//
// The ends live on the loops of a SimulatedWorld: its own, or its threads'. Used by the thread whose turn it is.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/transport/loopback/loopback_network.h"
#include "muster/transport/simulated/fault_script.h"
#include "muster/transport/simulated/simulated_process.h"

namespace muster {

struct NetworkOptions {
  absl::Duration shortest = absl::Microseconds(50);
  absl::Duration longest = absl::Milliseconds(2);
  // One message in so many takes up to `slow`; 0: none does.
  uint64_t slow_one_in = 0;
  absl::Duration slow = absl::Seconds(3);
};
// Nothing takes any time.
inline constexpr NetworkOptions kPromptNetwork = {.shortest = absl::ZeroDuration(), .longest = absl::ZeroDuration()};

// What the network knows of the user of a SimulatedTransport.
struct SimulatedHost final : LoopbackHost {
  SimulatedProcess* process = nullptr;  // null: one that has no name and never dies
  FaultScript* faults = nullptr;        // that its requests meet; null: none
  std::map<std::string, absl::Time> refused_until;
};

class SimulatedNetwork final : public LoopbackNetwork {
 public:
  // `loop` has the world's time and belongs to no process; it must outlive the network.
  explicit SimulatedNetwork(EventLoop& loop, const NetworkOptions& options = kPromptNetwork, uint64_t seed = 1)
      : loop_(loop), options_(options), seed_(seed) {}

  // The connections between two processes break: their ends see it after these delays, or when they are dead.
  void Cut(const std::string& one, const std::string& other, absl::Duration client_sees, absl::Duration server_sees);
  // Nothing passes between the two until then; what is sent meanwhile arrives afterwards.
  void Part(const std::string& one, const std::string& other, absl::Time until);
  // The same in one direction only.
  void PartTowards(const std::string& from, const std::string& to, absl::Time until);
  // What the kernel does when a process ends: closes its connections.
  void Close(SimulatedProcess& process);

  Link MakeLink() override;
  void Open(const Link& link, const std::string& address) override;
  void SendRequest(const Link& link, const std::shared_ptr<LoopbackMessage>& message) override;
  void SendReply(const Link& link, const std::shared_ptr<LoopbackMessage>& request, absl::Status status,
                 absl::string_view control, absl::Span<const ByteSpan> bulk) override;
  void ToServer(const Link& link, AtServer action) override;
  void ToClient(const Link& link, AtClient action) override;

 private:
  absl::Duration Delay(uint64_t connection, uint64_t message) const;
  absl::Time ArrivalAtServer(const Link& link);
  absl::Time ArrivalAtClient(const Link& link);
  absl::Time Arrival(const Link& link, bool to_server, absl::Time& last);
  absl::Time PartedUntil(const LoopbackLink& link, bool to_server) const;
  void Deliver(const Link& link, const std::shared_ptr<LoopbackMessage>& message);
  void DeliverPart(const Link& link, const std::shared_ptr<LoopbackMessage>& message, size_t bytes);
  // The client sees it at once, the server behind what is on its way to it.
  void BreakNow(const Link& link);
  void BreakAtClient(const Link& link, absl::Time when);
  void BreakAtServer(const Link& link, absl::Time when);

  EventLoop& loop_;
  const NetworkOptions options_;
  const uint64_t seed_;
  uint64_t last_link_ = 0;
  std::vector<Link> links_;
  std::map<std::pair<std::string, std::string>, absl::Time> parted_;  // from, to
};

}  // namespace muster
