#include "examples/train_and_evaluate/flags.h"

#include <CLI/CLI.hpp>
#include <string>

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Trains and evaluates a small convolutional network on handwritten digits,\nas an Estimator, by hogwild unless "
      "--algorithm says otherwise.",
      "train_and_evaluate");
  AddExampleFlags(app, flags);
  const auto add = [&app](const std::string& name, auto& value, const std::string& what) {
    app.add_option(name, value, what)->type_name("N")->capture_default_str()->check(NumberFromZero);
  };
  add("--save_steps", flags.save_steps, "steps between checkpoints; 0: none but the first and the last");
  add("--throttle_secs", flags.throttle_secs, "from one evaluation's start to the next's, at least");
  add("--start_delay_secs", flags.start_delay_secs, "of an evaluator, before its first evaluation");
  add("--patience_secs", flags.patience_secs, "of an evaluator: so long without a new checkpoint, and it gives up");
  add("--stop_at_accuracy", flags.stop_at_accuracy,
      "training ends when an evaluation was more accurate than this; 0: with --steps");
  ParseOrExit(app, argc, argv);
  return flags;
}
