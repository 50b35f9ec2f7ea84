// The honest reference of `bench steps`: the fastest plain training loop of one libtorch process without muster.
#pragma once

#include "bench/mlp.h"

namespace muster::bench {

// Minibatches a second of a perceptron in mlp.h with plain SGD, or torch's fused Adam, on one thread, measured for
// about `seconds` after a warm-up of a tenth of that. Sets torch to one thread for the rest of the process.
double MeasureLocalStepsPerSecond(const MlpWork& work, double seconds);

}  // namespace muster::bench
