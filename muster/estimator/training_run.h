// One training of an Estimator: its hooks in TensorFlow's order, its session and the loop of its steps. The core of
// Estimator::Train. Used by one thread.
#pragma once

#include <optional>

#include "muster/estimator/estimator.h"
#include "muster/estimator/model/input_fn.h"
#include "muster/estimator/model/model_fn.h"
#include "muster/estimator/model/run_config.h"
#include "muster/estimator/warm_start.h"
#include "muster/torch_bridge/facade/training.h"

namespace muster {

struct TrainingRun {
  Server& server;
  const RunConfig& config;  // resolved
  EstimatorSpec spec;
  InputReader& input;
  const TrainOptions& options;
  const std::optional<WarmStartSettings>& warm_start;
};

// Blocks until trained. Throws Error: those of the session, the hooks, the input and the model's functions.
void RunTraining(const TrainingRun& run);

}  // namespace muster
