// Runs an Experiment by the name of a schedule, or by the task's default: contrib.learn's learn_runner
// (contrib/learn/python/learn/learn_runner.py). Stateless functions, for main's thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/estimator/tensorflow/experiment.h"

namespace muster::learn_runner {

// "train", "evaluate", "continuous_eval", "continuous_eval_on_train_data", "train_and_evaluate",
// "continuous_train_and_eval", "run_std_server", "local_run", "test".
std::vector<std::string> Schedules();

// The schedule of a task if none is given: a process without a cluster, a master and a chief (also a worker 0 that is
// the chief) train and evaluate, or only train if the cluster lists its evaluator; a worker trains, a ps serves, an
// evaluator evaluates continuously. IsWrongConfiguration: a job of another name.
absl::StatusOr<std::string> DefaultSchedule(const TaskConfig& task);

// Sets up the handling of uncaught Errors, makes the experiment (which must use `output_dir` as its model_dir), and
// runs the schedule; empty: DefaultSchedule. Throws the schedule's Errors, and Error (exit code 2): no such schedule
// (suggests the nearest), before the experiment is made; no output_dir; an experiment whose estimator has another
// model_dir.
TrainAndEvaluateResults Run(const std::function<Experiment(const std::string& output_dir)>& experiment_fn,
                            const std::string& output_dir, const std::string& schedule = {});

}  // namespace muster::learn_runner
