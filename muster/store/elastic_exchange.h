// The worker's side of an elastic exchange: pushes the bound values, and moves them towards the centre by exactly what
// the centre was moved towards them (elastic_force.h). Used by the training thread.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "muster/store/store_client.h"

namespace muster {

class ElasticExchange {
 public:
  // `client` is bound to a model with `exchanges`, of float32 and float64 variables with the rule add; it must outlive
  // this. `alpha`: 0 < α ≤ 1; the paper uses 0.9 / workers.
  ElasticExchange(StoreClient& client, double alpha);

  // One exchange with all ps, counted as one update of so many minibatches. On an error nothing has moved here, and the
  // centre may have. Dropped (values that aren't finite, NonFinite::kDrop): nothing has moved at all.
  absl::StatusOr<StorePushResult> Exchange(uint32_t minibatches = 1);

 private:
  StoreClient& client_;
  const double alpha_;
  std::vector<std::vector<std::byte>> moved_;  // one a variable; empty for what isn't trainable
};

}  // namespace muster
