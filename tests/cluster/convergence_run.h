// One training of the digits by one algorithm (convergence_test.cc): four workers, each with its own client,
// connections and algorithm, in a fixed schedule, so that the same program gives the same run.
#pragma once

#include <vector>

#include "muster/data/images.h"
#include "tests/cluster/convergence_settings.h"

namespace muster {

struct ConvergencePoint {
  int minibatches = 0;  // of each worker so far
  double loss = 0;      // of the global values on the training rows
};

struct ConvergenceRun {
  std::vector<ConvergencePoint> curve;  // the first point is before any training
  double accuracy = 0;                  // of the final global values on the held-out rows
};

// A mistake in the setting, or a step that fails, fails the calling test; the run is then incomplete.
//
// Through a ps the workers take turns, one minibatch each, in one thread over the loopback network; if a step waits for
// all of them, the others run meanwhile. All-reduce has a thread for each worker.
ConvergenceRun TrainDigits(const ConvergenceSetting& setting, const ImageData& digits);

}  // namespace muster
