// An Experiment: a small network that tells two kinds of irises apart, trained or evaluated depending on this process's
// job in the cluster, in a folder named by the experiment's id.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "examples/digits/example_flags.h"
#include "examples/experiment_iris/iris.h"
#include "muster/muster.h"

namespace {

struct Flags {
  int64_t steps = 1000;
  // Three ReLUs are few: with some seeds all are zero on every row and nothing is learned. This seed works.
  uint64_t seed = 1;
  std::string output_root;
  std::string schedule;
  double eval_delay_secs = 5;
  std::string csv = IrisCsv();
};

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Trains and evaluates a small network on irises, as an Experiment: asynchronously, with Adagrad on the ps.",
      "experiment_iris");
  app.add_option("--steps", flags.steps, "train to this global step")->type_name("N")->capture_default_str();
  app.add_option("--output_root", flags.output_root,
                 "model_dir is EXPERIMENT_ID, else JOB_NAME, below it (default: MUSTER_OUTPUT_ROOT, as "
                 "`muster run --output_root` sets it, else /data/tensorflow-output)")
      ->type_name("FOLDER");
  app.add_option("--schedule", flags.schedule, "what this task does, by name; default: what its job says")
      ->type_name("NAME");
  app.add_option("--eval_delay_secs", flags.eval_delay_secs,
                 "how long the schedules evaluate and continuous_eval wait before they evaluate first")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(NumberFromZero);
  app.add_option("--seed", flags.seed, "determines the initial weights")->type_name("N")->capture_default_str();
  // The default is found anew on each machine, so it isn't shown.
  app.add_option("--csv", flags.csv,
                 "other irises: four lengths and the species a line; default: those of this example")
      ->type_name("FILE");
  ParseOrExit(app, argc, argv, TakenBefore::kTask);
  return flags;
}

}  // namespace

int main(int argc, char** argv) {
  // Takes this process's task from the flags; the remaining flags are this program's own.
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  const Flags flags = ParseFlags(argc, argv);
  const std::string output_dir = muster::OutputDirOf(task, flags.output_root);

  // [experiment]
  const auto make = [&](const std::string& model_dir) {
    muster::RunConfig config{.log_device_placement = true};  // reads TF_CONFIG
    config.model_dir = model_dir;
    config.seed = flags.seed;
    config.task = task;  // with the flags, which win
    const auto estimator = std::make_shared<muster::DNNRegressor>(
        muster::DnnOptions{.hidden_units = {3, 3}, .feature_columns = {muster::RealValuedColumn("feature", 4)}},
        config);
    const auto irises = [&](const muster::InputContext&) { return Irises(flags.csv); };
    return muster::Experiment({.estimator = estimator,
                               .train_input_fn = irises,
                               .eval_input_fn = irises,
                               .train_steps = flags.steps,
                               .eval_steps = 1,  // one batch is all there is
                               .eval_delay_secs = flags.eval_delay_secs});
  };
  const auto results = muster::learn_runner::Run(make, output_dir, flags.schedule);
  // [/experiment]

  // Only the task that has evaluated has results: the chief, unless the schedule says otherwise.
  if (!results.eval.empty())
    std::printf("Average loss %.4f after %.0f steps\n", results.eval.at("average_loss"),
                results.eval.at("global_step"));
}
