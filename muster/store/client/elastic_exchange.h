// The worker's side of an elastic exchange: pushes the bound values, and then, when the caller wants, moves them
// towards the centre by exactly what the centre was moved towards them (elastic_force.h). In between a gradient can be
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
  // `client` is bound to a model with `exchanges`, of float32 and float64 variables with the rule add; it must outlive
  // this. `alpha`: 0 < α ≤ 1; the paper uses 0.9 / workers.
  ElasticExchange(StoreClient& client, double alpha);

  // One exchange with all ps, counted as one update of so many minibatches; `clock` as StorePushOptions::clock. The
  // bound values stay as they are, the centre has moved. On an error it may have. Dropped (values that aren't finite,
  // NonFinite::kDrop): nothing has moved at all.
  absl::StatusOr<StorePushResult> Exchange(uint32_t minibatches = 1, uint64_t clock = 0);
  // Moves the bound values, wherever they have gone meanwhile, by what the last Exchange has moved the centre: once;
  // nothing if it failed or was dropped.
  void Move();

 private:
  StoreClient& client_;
  const double alpha_;
  std::vector<std::vector<std::byte>> moved_;  // one a variable; empty for what isn't trainable
  bool to_move_ = false;                       // it is of an exchange that the bound values haven't followed yet
};

}  // namespace muster
