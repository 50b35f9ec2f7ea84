// Barriers by name: whoever arrives is answered when as many have arrived as it asked for (docs/store_protocol.md,
// "Barriers"). In memory only. Lives on the store's event loop.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/store/client_table.h"
#include "muster/store/held_answer.h"
#include "muster/store/messages.h"

namespace muster {

class Barriers {
 public:
  // `clients` must outlive it.
  explicit Barriers(const ClientTable& clients) : clients_(clients) {}

  // The sender is known. InvalidArgument: no parties, more than there are tasks, or another number than who came first.
  void Arrive(ConnectionId connection, const BarrierRequest& message, absl::Time now, Responder responder);
  // Opens those that are complete because somebody has left.
  void Look(absl::Time now);
  void Disconnect(ConnectionId connection);
  void FailAll(const absl::Status& status);

  bool waiting() const { return !barriers_.empty(); }
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
    std::map<uint32_t, Arrival> arrivals;  // by client: each counts once
  };

  [[nodiscard]] absl::Status Check(const BarrierRequest& message) const;
  bool Complete(const Barrier& barrier, absl::Time now) const;

  const ClientTable& clients_;
  std::map<std::string, Barrier> barriers_;  // those at which somebody waits
  std::map<uint32_t, Stamp> passed_;         // by client: the last barrier that opened for it
};

}  // namespace muster
