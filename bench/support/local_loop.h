// The fair reference of `bench steps`: the fastest plain training loop of one libtorch process without muster.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/support/mlp.h"

namespace muster::bench {

// Returns a function that trains a perceptron of mlp.h on the next minibatch, with plain SGD or torch's fused Adam.
// Sets torch to one thread for the rest of the process. `seed` determines the minibatches.
std::function<void()> MakeLocalStep(const MlpWork& work, uint64_t seed);

}  // namespace muster::bench
