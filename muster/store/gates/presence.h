// Says in the ps's log which of its workers are lost, and which are back: whoever waits for them, or goes on without
// them, does so in silence. Lives on the store's event loop.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/store/gates/client_table.h"

namespace muster {

class Presence {
 public:
  // `clients` must outlive it.
  explicit Presence(const ClientTable& clients) : clients_(clients), states_(clients.clients().size()) {}

  // `effect`: what it means for training that a worker has gone or come, to be said after it; may be empty.
  void Look(absl::Time now, absl::FunctionRef<std::string()> effect);
  // When Look may have something to say by the mere passing of time; InfiniteFuture if not.
  absl::Time NextLook(absl::Time now) const;
  // Training has ended: who leaves now is nobody's loss.
  void End() { ended_ = true; }

 private:
  struct State {
    absl::Time dead_since = absl::InfiniteFuture();  // by our looks
    bool said = false;
  };

  const ClientTable& clients_;
  std::vector<State> states_;  // one a client
  bool ended_ = false;
};

}  // namespace muster
