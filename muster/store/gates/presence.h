// Logs which workers of a ps are lost and which are back: clients that wait for them, or go on without them, do so
// silently. Lives on the store's event loop.
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

  // `effect`: what a worker's going or coming means for training, logged after it; may be empty.
  void Recheck(absl::Time now, absl::FunctionRef<std::string()> effect);
  // Returns when Recheck may have something to log by the mere passing of time; InfiniteFuture if not.
  absl::Time NextCheck(absl::Time now) const;
  // Training has ended: a worker that leaves now isn't lost.
  void End() { ended_ = true; }

 private:
  struct State {
    absl::Time dead_since = absl::InfiniteFuture();  // as seen by Recheck
    bool said = false;
  };

  const ClientTable& clients_;
  std::vector<State> states_;  // one per client
  bool ended_ = false;
};

}  // namespace muster
