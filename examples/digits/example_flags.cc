#include "examples/digits/example_flags.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/algo/algorithm_choice.h"
#include "muster/cluster/task_flags.h"
#include "muster/train/error.h"

namespace {

// A check of CLI11, whose own prints the largest number there is.
std::string WholeFromOne(const std::string& text) {
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number) && number > 0) return "";
  return absl::StrCat("'", text, "': accepted is a whole number from 1");
}

}  // namespace

void AddExampleFlags(CLI::App& app, ExampleFlags& flags) {
  app.add_option("--steps", flags.steps,
                 "stop at this global step; where there is none during training (one_shot_averaging, ensemble), after "
                 "as many minibatches of each worker")
      ->capture_default_str()
      ->check(WholeFromOne);
  app.add_option("--batch_size", flags.batch_size, "of each worker")->capture_default_str()->check(WholeFromOne);
  app.add_option("--seed", flags.seed, "of the initial weights and the order of the data")->capture_default_str();
  app.add_option("--data_dir", flags.data_dir,
                 "folder with MNIST's four IDX files, gzipped or not; default: the digits");
  app.add_option("--csv", flags.csv, "the digits: 64 pixels and the label a line")->capture_default_str();
}

void ParseOrExit(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s: %s; see --help\n", app.get_name().c_str(), error.what());
    std::exit(static_cast<int>(muster::ExitCode::kUsage));
  }
}

std::string ClusterAndAlgorithmHelp() {
  return absl::StrCat("How a process learns its place in the cluster (or TF_CONFIG, or nothing for one process):\n",
                      muster::TaskFlagsHelp(), "How the workers' updates are combined:\n",
                      muster::AlgorithmFlagsHelp());
}

ExampleFlags ParseExampleFlags(int argc, char** argv, ExampleFlags standard, const std::string& footer) {
  CLI::App app("Trains a small convolutional network on handwritten digits.",
               std::filesystem::path(argv[0]).filename().string());
  app.footer(footer);
  AddExampleFlags(app, standard);
  ParseOrExit(app, argc, argv);
  return standard;
}
