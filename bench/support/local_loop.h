// The honest reference of `bench steps`: the fastest plain training loop of one libtorch process without muster.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/support/mlp.h"

namespace muster::bench {

// A step on the next minibatch of a perceptron in mlp.h, with plain SGD or torch's fused Adam. Sets torch to one thread
// for the rest of the process. `seed`: of the minibatches.
std::function<void()> MakeLocalStep(const MlpWork& work, uint64_t seed);

}  // namespace muster::bench
