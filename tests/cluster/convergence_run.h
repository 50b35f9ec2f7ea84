// One training of the digits by one algorithm (convergence_test.cc): four workers, each with a client, connections and
// an algorithm of its own, in a fixed schedule, so that the same program gives the same run.
#pragma once

#include <vector>

#include "muster/data/images.h"
#include "tests/cluster/convergence_settings.h"

namespace muster {

struct ConvergencePoint {
  int minibatches = 0;  // of each worker so far
  double loss = 0;      // of the global values on all that is learned from
};

struct ConvergenceRun {
  std::vector<ConvergencePoint> curve;  // the first one is of the values that training begins with
  double accuracy = 0;                  // of the global values at the end, on what is held out
};

// A mistake in the setting, or a step that fails, is a failure of the test that calls it; the run is then not complete.
//
// Through a ps the workers take turns, a minibatch each, in one thread, over the loopback network; where a step waits
// for all of them, the others' run while it waits. All-reduce has a thread for each worker.
ConvergenceRun TrainDigits(const ConvergenceSetting& setting, const ImageData& digits);

}  // namespace muster
