// An Experiment: a small network that tells two kinds of irises apart, trained or evaluated depending on this process's
// job in the cluster, in a folder named by the experiment's id.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
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
  std::string csv = IrisCsv();
};

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  CLI::App app("Trains and evaluates a small network on irises.", std::filesystem::path(argv[0]).filename().string());
  app.add_option("--steps", flags.steps, "train to this global step")->capture_default_str();
  app.add_option("--seed", flags.seed, "determines the initial weights")->capture_default_str();
  app.add_option("--output_root", flags.output_root,
                 "model_dir is EXPERIMENT_ID, else JOB_NAME, below it (default: MUSTER_OUTPUT_ROOT, as "
                 "`muster run --output_root` sets it, else /data/tensorflow-output)");
  app.add_option("--schedule", flags.schedule, "what this task does, by name; default: what its job says");
  app.add_option("--csv", flags.csv, "the irises: four lengths and the species a line")->capture_default_str();
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
                               .eval_steps = 1});  // one batch is all there is
  };
  const auto results = muster::learn_runner::Run(make, output_dir, flags.schedule);
  // [/experiment]

  // Only the task that has evaluated has results: the chief, unless the schedule says otherwise.
  if (!results.eval.empty())
    std::printf("Average loss %.4f after %.0f steps\n", results.eval.at("average_loss"),
                results.eval.at("global_step"));
}
