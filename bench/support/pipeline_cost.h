// What an algorithm costs a worker beside computing, the store and its own update rule: of training in one process, one
// worker and one ps on the loopback network and one thread, with gradients that are there already. The time of a step,
// less what the worker's track says of it (observe/track.h): computing, what the store's client does between handing a
// push over and having the answer (the ps works in it, on this thread), and the worker's rule. What is left over is the
// algorithm's own, with what the client does around its messages: it can be too much, not too little.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/algo/choice/algorithm_choice.h"
#include "muster/cluster/placement/variable_spec.h"

namespace muster::bench {

// Of a minibatch.
struct PipelineCost {
  double own_microseconds = 0;
  // In messages to the ps and from it, as the client's channel counts them.
  double bytes_sent = 0;
  double bytes_received = 0;
};

// The mean of `steps` steps or more: whole windows, after one that isn't counted. For plans with a ps. One-step-stale
// training has a thread for what its cost would be: there only the bytes are what they say.
absl::StatusOr<PipelineCost> MeasurePipelineCost(const AlgorithmPlan& plan, const std::vector<VariableSpec>& variables,
                                                 int64_t steps);

}  // namespace muster::bench
