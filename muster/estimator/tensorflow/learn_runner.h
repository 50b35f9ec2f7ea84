// Runs an Experiment by the name of a schedule, or by what its task does of itself: contrib.learn's learn_runner
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

// What a task does unless somebody says otherwise: a process alone, a master and a chief (a worker 0 that is one, too)
// train and evaluate, or only train where the cluster's evaluator is listed in it; a worker trains, a ps serves, an
// evaluator evaluates continuously. IsWrongConfiguration: a job of another name.
absl::StatusOr<std::string> DefaultSchedule(const TaskConfig& task);

// Sets up the handling of uncaught Errors, makes the experiment (`output_dir` is the model_dir that it is to use), and
// runs the schedule; empty: DefaultSchedule. Throws what the schedule does, and Error (exit code 2): no such schedule
// (with the nearest), before the experiment is made; no output_dir; an experiment whose estimator has another
// model_dir.
TrainAndEvaluateResults Run(const std::function<Experiment(const std::string& output_dir)>& experiment_fn,
                            const std::string& output_dir, const std::string& schedule = {});

}  // namespace muster::learn_runner
