// What the request handlers of a ps share, and the checks that many requests have in common. Lives on the store's event
// loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "muster/store/arena/arena.h"
#include "muster/store/gates/client_table.h"
#include "muster/store/messages/stamp.h"
#include "muster/store/service/store_options.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/listener.h"

namespace muster {

struct PsState {
  PsState(EventLoop& event_loop, StoreOptions store_options)
      : loop(event_loop), options(std::move(store_options)), clients(options.workers, options.lease) {}

  // The sender is known, and alive. Errors of ClientTable::Hear.
  [[nodiscard]] absl::Status Hear(ConnectionId connection, const Stamp& stamp) {
    return clients.Hear(stamp, connection, loop.Now());
  }
  // Does the same, and checks that the sender holds the chief's lease of that epoch.
  [[nodiscard]] absl::Status HearChief(ConnectionId connection, const Stamp& stamp, uint64_t chief_epoch);
  [[nodiscard]] absl::Status NeedModel() const;     // Aborted without one
  [[nodiscard]] absl::Status NeedLead() const;      // InvalidArgument: this isn't ps 0
  [[nodiscard]] absl::Status NeedTraining() const;  // Cancelled once it has ended
  // Aborted: the arena's values are of another one.
  [[nodiscard]] absl::Status CheckGeneration(uint64_t generation) const;

  EventLoop& loop;
  const StoreOptions options;
  ClientTable clients;
  std::shared_ptr<Arena> arena;  // null: there is no model. Shared with what runs in the background
  std::string ending;            // why training has ended; empty: it hasn't
};

}  // namespace muster
