// Measures what an algorithm costs a worker beside computing, the store and its own update rule, in one process: one
// worker and one ps on the loopback network and one thread, with gradients already computed. Takes the time of a step
// less what the worker's track records (observe/track.h): computing, what the store's client does from handing over a
// push until it has the answer (the ps works within that, on this thread), and the worker's rule. The rest is the
// algorithm's own time, plus what the client does around its messages: so the result can be too high, not too low.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/algo/choice/algorithm_choice.h"
#include "muster/cluster/placement/variable_spec.h"

namespace muster::bench {

// The cost of one minibatch.
struct PipelineCost {
  double own_microseconds = 0;
  // In messages to the ps and from it, as counted by the client's channel.
  double bytes_sent = 0;
  double bytes_received = 0;
};

// Returns the mean of at least `steps` steps: whole windows, after one that isn't counted. For plans with a ps.
// One-step-stale training does its own work in a thread: for it only the bytes are valid.
absl::StatusOr<PipelineCost> MeasurePipelineCost(const AlgorithmPlan& plan, const std::vector<VariableSpec>& variables,
                                                 int64_t steps);

}  // namespace muster::bench
