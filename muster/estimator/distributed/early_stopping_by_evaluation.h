// Ends the training of the whole cluster when the evaluations say so
// (tf.estimator.experimental.stop_if_no_decrease_hook and its kin, early_stopping.py). The chief reads the results that
// an evaluator, or the same process, has written (model_dir/eval/metrics.jsonl); its stop is everybody's:
// train/hooks/early_stopping_by_run.h, whose hooks look at the chief's own values instead. On a worker these hooks do
// nothing. Used by the training thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/estimator/estimator.h"
#include "muster/train/hooks/early_stopping_by_run.h"

namespace muster {

// Returns all results in an evaluation's folder by global step (the later ones if a step was evaluated twice). A
// missing file gives no results. DataLoss: a line that isn't JSON, except for an unfinished last one. TensorFlow's
// read_eval_metrics.
absl::StatusOr<std::map<int64_t, EvalResults>> ReadEvalMetrics(FileSystem& files, const std::string& eval_dir);

// The four functions throw Error (InvalidArgument, exit code 2): a number of steps below 1, or a NaN threshold.
struct EvalStopOptions {
  std::string metric = "loss";  // a name in the results; evaluations without it don't count
  std::string eval_dir;         // empty: the estimator's, Estimator::EvalDir()
  int64_t min_steps = 0;        // results of earlier global steps don't count
  StopCheck check;
};
// Stops once the best value is so many steps old, at any of the steps, whatever came later.
std::shared_ptr<SessionHook> StopIfEvalHasNoDecrease(const Estimator& estimator, int64_t max_steps_without_decrease,
                                                     const EvalStopOptions& options = {});
std::shared_ptr<SessionHook> StopIfEvalHasNoIncrease(const Estimator& estimator, int64_t max_steps_without_increase,
                                                     const EvalStopOptions& options = {});
// Stops once a value is above, or below, the threshold.
std::shared_ptr<SessionHook> StopIfEvalIsHigher(const Estimator& estimator, double threshold,
                                                const EvalStopOptions& options = {});
std::shared_ptr<SessionHook> StopIfEvalIsLower(const Estimator& estimator, double threshold,
                                               const EvalStopOptions& options = {});

}  // namespace muster
