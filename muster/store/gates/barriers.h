// Barriers by name: a client that arrives is answered when as many clients have arrived as it asked for
// (docs/store/gates.md). In memory only. Lives on the store's event loop.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/store/gates/client_table.h"
#include "muster/store/gates/held_answer.h"
#include "muster/store/messages/messages.h"

namespace muster {

class Barriers {
 public:
  // `clients` must outlive it.
  explicit Barriers(const ClientTable& clients) : clients_(clients) {}

  // The sender must be known. InvalidArgument: no parties, more than there are tasks, or not the first arrival's
  // number.
  void Arrive(ConnectionId connection, const BarrierRequest& message, absl::Time now, Responder responder);
  // Opens barriers that are complete because a client has left.
  void Recheck(absl::Time now);
  // Makes `incarnation` the client's process: an earlier one stops waiting, and is told so.
  void Replace(uint32_t client, uint64_t incarnation);
  void Disconnect(ConnectionId connection);
  void FailAll(const absl::Status& status);

  void Describe(std::vector<WaitingFor>& waiting) const;

 private:
  struct Arrival {
    ConnectionId connection{};
    absl::Time since;
    Stamp stamp;
    Responder responder;
  };
  struct Barrier {
    uint32_t parties = 0;
    bool elastic = false;
    // By client, each counted once. More than one arrival: the client asked again on another connection, and this ps
    // doesn't know yet on which one it listens.
    std::map<uint32_t, std::vector<Arrival>> arrivals;
  };

  [[nodiscard]] absl::Status Check(const BarrierRequest& message) const;
  bool Complete(const Barrier& barrier, absl::Time now) const;
  // Removes the arrivals for which `gone` returns true.
  void Erase(absl::FunctionRef<bool(uint32_t client, Arrival& arrival)> gone);

  const ClientTable& clients_;
  std::map<std::string, Barrier> barriers_;  // those with waiting clients
  std::map<uint32_t, Stamp> passed_;         // by client: the last barrier that opened for it
};

}  // namespace muster
