// Trains and evaluates one Estimator, wherever it runs: in one process, or in a cluster in which this process is the
// chief, a worker, a ps or the evaluator. TensorFlow's tf.estimator.train_and_evaluate (training.py), its throttling
// and log lines; but workers begin at once here. docs/train_and_evaluate.md says what each task does, and when it ends.
// Used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/estimator/distributed/exporter.h"
#include "muster/estimator/estimator.h"

namespace muster {

struct TrainSpec {
  InputFn input_fn;
  std::optional<int64_t> max_steps;  // the evaluator ends once it has evaluated this; unset: until the input ends
  std::vector<std::shared_ptr<SessionHook>> hooks;
  std::vector<std::shared_ptr<CheckpointSaverListener>> saving_listeners;
};

struct EvalSpec {
  InputFn input_fn;
  std::optional<int64_t> steps = 100;  // unset: until the input ends
  std::string name;
  std::vector<std::shared_ptr<SessionHook>> hooks;
  std::vector<std::shared_ptr<Exporter>> exporters;
  double start_delay_secs = 120;  // an evaluator's: before its first evaluation, unless that is the last
  double throttle_secs = 600;     // at least, from one evaluation's start to the next's, unless that is the last
  double patience_secs = 86400;   // an evaluator gives up after this long without a new checkpoint (exit code 138)
};

// InvalidArgument (IsWrongConfiguration) naming the field, its value and what is accepted.
[[nodiscard]] absl::Status CheckTrainSpec(const TrainSpec& spec);
[[nodiscard]] absl::Status CheckEvalSpec(const EvalSpec& spec);

// The results of a local run. In a cluster they are empty, except on the evaluator and on a master.
struct TrainAndEvaluateResults {
  EvalResults eval;
  std::vector<std::string> exports;
};

// Blocks until this task's part is done; on a ps until training has ended. Throws Error: wrong specs or cluster (exit
// code 2), those of Train, Evaluate and the exporters.
TrainAndEvaluateResults TrainAndEvaluate(Estimator& estimator, const TrainSpec& train_spec, const EvalSpec& eval_spec);

}  // namespace muster
