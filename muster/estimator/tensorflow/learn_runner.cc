#include "muster/estimator/tensorflow/learn_runner.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/quoted.h"
#include "muster/train/threads/error.h"

namespace muster::learn_runner {
namespace {

struct Schedule {
  const char* name;
  TrainAndEvaluateResults (*run)(Experiment&);
};

constexpr Schedule kSchedules[] = {
    {"train",
     [](Experiment& experiment) {
       experiment.Train();
       return TrainAndEvaluateResults();
     }},
    {"evaluate", [](Experiment& experiment) { return experiment.Evaluate(); }},
    {"continuous_eval", [](Experiment& experiment) { return experiment.ContinuousEval(); }},
    {"continuous_eval_on_train_data", [](Experiment& experiment) { return experiment.ContinuousEvalOnTrainData(); }},
    {"train_and_evaluate", [](Experiment& experiment) { return experiment.TrainAndEvaluate(); }},
    {"continuous_train_and_eval", [](Experiment& experiment) { return experiment.ContinuousTrainAndEval(); }},
    {"run_std_server",
     [](Experiment& experiment) {
       experiment.RunStdServer();
       return TrainAndEvaluateResults();
     }},
    {"local_run", [](Experiment& experiment) { return experiment.LocalRun(); }},
    {"test", [](Experiment& experiment) { return experiment.Test(); }},
};

absl::Status CheckSchedule(const std::string& name) {
  const std::vector<std::string> names = Schedules();
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return WrongOptionError(absl::StrCat("schedule ", Quoted(name), " isn't one of an experiment's",
                                       NearestHint(name, names), "; accepted: ", absl::StrJoin(names, ", ")));
}

absl::Status CheckModelDir(const std::string& model_dir, const std::string& output_dir) {
  const auto normal = [](const std::string& path) { return (std::filesystem::path(path) / "").lexically_normal(); };
  if (normal(model_dir) == normal(output_dir)) return absl::OkStatus();
  return WrongOptionError(absl::StrCat("the experiment's estimator has the model_dir ", model_dir,
                                       ", but it is to write to ", output_dir,
                                       "; accepted: RunConfig::model_dir is the output_dir that the experiment's "
                                       "function is called with"));
}

}  // namespace

std::vector<std::string> Schedules() {
  std::vector<std::string> names;
  for (const Schedule& schedule : kSchedules) names.emplace_back(schedule.name);
  return names;
}

absl::StatusOr<std::string> DefaultSchedule(const TaskConfig& task) {
  if (task.is_ps()) return "run_std_server";
  if (task.is_evaluator()) return "continuous_eval";
  // Some launchers list the evaluator in the cluster. The chief must not evaluate then, too.
  if (task.is_chief()) return task.cluster().HasJob(kEvaluatorJob) ? "train" : "train_and_evaluate";
  if (task.task().job == kWorkerJob) return "train";
  return WrongConfigurationError(absl::StrCat("a task of job ", Quoted(task.task().job),
                                              " has no schedule of its own; accepted: one by name (",
                                              absl::StrJoin(Schedules(), ", "), ")"));
}

TrainAndEvaluateResults Run(const std::function<Experiment(const std::string& output_dir)>& experiment_fn,
                            const std::string& output_dir, const std::string& schedule) {
  HandleUncaughtErrors();
  ThrowIfError(CheckSchedule(schedule));
  if (output_dir.empty())
    throw Error(
        WrongOptionError("learn_runner::Run: output_dir is empty; accepted: the folder that checkpoints and "
                         "results go to"));
  Experiment experiment = experiment_fn(output_dir);
  const RunConfig& config = experiment.estimator().config();
  ThrowIfError(CheckModelDir(config.model_dir, output_dir));
  const std::string chosen = schedule.empty() ? ValueOrThrow(DefaultSchedule(*config.task)) : schedule;
  LogInfo("schedule ", chosen, schedule.empty() ? " (of this task)" : "", ", model_dir ", config.model_dir);
  const auto* found = std::find_if(std::begin(kSchedules), std::end(kSchedules),
                                   [&](const Schedule& one) { return one.name == chosen; });
  return found->run(experiment);
}

}  // namespace muster::learn_runner
