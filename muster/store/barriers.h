// Barriers by name: whoever arrives is answered when as many have arrived as it asked for (docs/store/gates.md).
// In memory only. Lives on the store's event loop.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
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
  // The client's process is that one from now on: an earlier one waits for nothing any more, and is told so.
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
    // By client, which counts once. More than one: the client asked again, on another connection, and this ps doesn't
    // know yet on which of them it listens.
    std::map<uint32_t, std::vector<Arrival>> arrivals;
  };

  [[nodiscard]] absl::Status Check(const BarrierRequest& message) const;
  bool Complete(const Barrier& barrier, absl::Time now) const;
  // Takes out the arrivals that `gone` says yes to.
  void Erase(absl::FunctionRef<bool(uint32_t client, Arrival& arrival)> gone);

  const ClientTable& clients_;
  std::map<std::string, Barrier> barriers_;  // those at which somebody waits
  std::map<uint32_t, Stamp> passed_;         // by client: the last barrier that opened for it
};

}  // namespace muster
