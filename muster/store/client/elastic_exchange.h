// The worker's side of an elastic exchange: pushes the bound values, and later, when the caller wants, moves them
// towards the centre by exactly what the centre moved towards them (elastic_force.h). Meanwhile a gradient can be
// computed at the values as they were pushed. Used by the training thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/store/client/store_client.h"

namespace muster {

class ElasticExchange {
 public:
  // `client` must be bound to a model with `exchanges`, of float32 and float64 variables with the rule add; it must
  // outlive this. `alpha`: 0 < α ≤ 1; the paper uses 0.9 / workers.
  ElasticExchange(StoreClient& client, double alpha);

  // Does one exchange with all ps, counted as one update of `minibatches`; `clock` as StorePushOptions::clock. The
  // bound values stay as they are; the centre moves. On an error it may have moved. Dropped (values that aren't finite,
  // NonFinite::kDrop): nothing has moved at all.
  absl::StatusOr<StorePushResult> Exchange(uint32_t minibatches = 1, uint64_t clock = 0);
  // Moves the bound values, whatever they are by now, by what the last Exchange moved the centre. Does so once, and not
  // at all if it failed or was dropped.
  void Move();

 private:
  StoreClient& client_;
  const double alpha_;
  std::vector<std::vector<std::byte>> moved_;  // one per variable; empty if it isn't trainable
  bool to_move_ = false;                       // the bound values haven't followed `moved_` yet
};

}  // namespace muster
