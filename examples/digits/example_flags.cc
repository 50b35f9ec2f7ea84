#include "examples/digits/example_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/algo/choice/algorithm_choice.h"
#include "muster/algo/choice/algorithm_table.h"
#include "muster/base/text/nearest_name.h"
#include "muster/cluster/identity/flag_scan.h"
#include "muster/cluster/identity/task_flags.h"
#include "muster/cluster/quoted.h"
#include "muster/train/threads/error.h"

namespace {

// Returns that flag of `app`, whose empty value means none if it names a file, a folder or the like.
std::optional<muster::KnownFlag> FlagOf(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw("--" + name);
  if (option == nullptr) return std::nullopt;
  const std::string type = option->get_type_name();
  return muster::KnownFlag{.name = name,
                           .accepted = type,
                           .is_switch = option->get_type_size() == 0,
                           .may_be_empty = type == "FILE" || type == "FOLDER" || type == "NAME"};
}

// A check for CLI11, whose own would print the largest number possible.
std::string WholeFromOne(const std::string& text) {
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number) && number > 0) return "";
  return absl::StrCat("'", text, "': accepted is a whole number from 1");
}

std::string HelpOf(TakenBefore taken) {
  if (taken == TakenBefore::kNothing) return "";
  std::string help;
  if (taken == TakenBefore::kTaskAndAlgorithm)
    absl::StrAppend(&help, "How the workers' updates are combined:\n", muster::AlgorithmFlagsHelp(), "\n");
  return absl::StrCat(help,
                      "How a process learns its place in the cluster (or TF_CONFIG, or nothing for one process):\n",
                      muster::TaskFlagsHelp());
}

// Returns the message for an unknown word. A mistyped flag may be meant for any of the parsers that read the line.
std::string UnknownArgument(const CLI::App& app, TakenBefore taken) {
  const std::vector<std::string> words = app.remaining();
  const std::string word = words.empty() ? "" : words.front();
  std::string message = absl::StrCat("unknown argument ", muster::Quoted(word));
  if (!absl::StartsWith(word, "--")) return message;
  std::vector<std::string> names;
  const auto add = [&names](const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  if (taken != TakenBefore::kNothing) add(muster::TaskFlagNames());
  if (taken == TakenBefore::kTaskAndAlgorithm) add(muster::AlgorithmFlagNames());
  for (const CLI::Option* option : app.get_options()) add(option->get_lnames());
  const std::string name = absl::StrReplaceAll(word.substr(2, word.find('=') - 2), {{"-", "_"}});
  const std::string nearest = muster::NearestName(name, names);
  if (!nearest.empty()) absl::StrAppend(&message, " (nearest: --", nearest, ")");
  return message;
}

[[noreturn]] void RefuseFlags(const CLI::App& app, const std::string& message) {
  std::fprintf(stderr, "%s: %s; see --help\n", app.get_name().c_str(), message.c_str());
  std::exit(static_cast<int>(muster::ExitCode::kUsage));
}

}  // namespace

std::string NumberFromZero(const std::string& text) {
  double number = 0;
  if (absl::SimpleAtod(text, &number) && number >= 0 && number <= 1e9) return "";
  return absl::StrCat("'", text, "': accepted is a number from 0");
}

void AddExampleFlags(CLI::App& app, ExampleFlags& flags, TakenBefore taken) {
  const bool has_global_step = taken == TakenBefore::kTaskAndAlgorithm;
  app.add_option("--steps", flags.steps,
                 has_global_step
                     ? "stop at this global step: it counts updates of the shared values, one for a commit of any "
                       "worker, or for a round where the workers wait for each other"
                     : "minibatches that each worker trains on")
      ->type_name("N")
      ->capture_default_str()
      ->check(WholeFromOne);
  app.add_option("--batch_size", flags.batch_size, "size of each worker's minibatch")
      ->type_name("N")
      ->capture_default_str()
      ->check(WholeFromOne);
  app.add_option("--data_dir", flags.data_dir,
                 "folder with MNIST's four IDX files, gzipped or not, instead of the digits")
      ->type_name("FOLDER");
  // The default is found anew on each machine, so it isn't shown.
  app.add_option("--csv", flags.csv, "other digits: 64 pixels and the label a line; default: those of examples/data")
      ->type_name("FILE");
  app.add_option("--seed", flags.seed, "determines the initial weights and the order of the data")
      ->type_name("N")
      ->capture_default_str();
}

void ParseOrExit(CLI::App& app, int argc, char** argv, TakenBefore taken) {
  app.footer(HelpOf(taken));
  auto words = muster::SplitEmptyValues(muster::ArgumentsOf(argc, argv),
                                        [&app](const std::string& name) { return FlagOf(app, name); });
  if (!words.ok()) RefuseFlags(app, std::string(words.status().message()));
  std::reverse(words->begin(), words->end());  // as CLI11 takes them
  try {
    app.parse(*std::move(words));
  } catch (const CLI::Success& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ExtrasError&) {
    RefuseFlags(app, UnknownArgument(app, taken));
  } catch (const CLI::ParseError& error) {
    RefuseFlags(app, error.what());
  }
}

std::string ByAlgorithm(const std::string& name) {
  const muster::AlgorithmInfo* info = muster::FindAlgorithm(name);
  return absl::StrCat("Trains a small convolutional network on handwritten digits by ", name,
                      info == nullptr ? "." : absl::StrCat(":\n", info->summary, "."));
}

ExampleFlags ParseExampleFlags(int argc, char** argv, ExampleFlags standard, TakenBefore taken) {
  CLI::App app(standard.description, program_invocation_short_name);
  AddExampleFlags(app, standard, taken);
  ParseOrExit(app, argc, argv, taken);
  return standard;
}
