// `./dev simulate`: runs random schedules of a simulated cluster, one after the other, until one violates an invariant
// or the time is over. Runs a failing schedule again to print its events, and with --shrink makes it smaller first.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "apps/simulate/simulated_kind.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "muster/cluster/quoted.h"

namespace {

using muster::ScheduleReduction;
using muster::SimulatedKind;

struct Options {
  std::optional<double> minutes;
  std::optional<uint64_t> seed;
  std::optional<uint64_t> schedules;
  std::string world = "cluster";
  std::string plant;
  std::string faults;
  bool shrink = false;
  bool all = false;
  bool verbose = false;
  ScheduleReduction reduction;
};

// The text to print if one of our CHECKs fails: which schedule it was.
char dying_words[256];

void OnAbort(int) {
  const ssize_t written = write(STDERR_FILENO, dying_words, strnlen(dying_words, sizeof dying_words));
  _exit(written < 0 ? 2 : 1);
}

class Simulator {
 public:
  Simulator(const Options& options, SimulatedKind& world) : options_(options), world_(world) {}

  // Returns the exit code.
  int Run() {
    const absl::Time started = muster::RealClock().Now();
    const bool only_one = options_.seed && !options_.schedules && !options_.minutes;
    const uint64_t schedules = only_one ? 1 : options_.schedules.value_or(~uint64_t{0});
    const absl::Time until =
        options_.schedules || only_one ? absl::InfiniteFuture() : started + absl::Minutes(options_.minutes.value_or(1));
    const uint64_t first = options_.seed ? *options_.seed : std::random_device()();
    absl::Time next_line = started + absl::Seconds(5);
    for (uint64_t i = 0; i < schedules && muster::RealClock().Now() < until; ++i) {
      if (Violates(first + i)) {
        if (!options_.all) return Found(first + i);
        ++found_;
        Say(absl::StrCat("simulate: seed ", first + i, ": ", last_violation_));
      }
      if (muster::RealClock().Now() < next_line) continue;
      next_line += absl::Seconds(5);
      PrintProgress(first + i, started);
    }
    PrintProgress(first + done_ - 1, started);
    Say(absl::StrCat("simulate: ", done_, " schedules from seed ", first, " on, ",
                     found_ == 0 ? "nothing" : absl::StrCat(found_), " found"));
    return found_ == 0 ? 0 : 1;
  }

 private:
  std::string Command(uint64_t seed, const ScheduleReduction& reduction) const {
    return absl::StrCat("./dev simulate", options_.world == "cluster" ? "" : " --world " + options_.world, " --seed ",
                        seed, reduction.ToFlags(),
                        options_.plant.empty() ? "" : absl::StrCat(" --plant ", options_.plant));
  }

  bool Fails(uint64_t seed, const ScheduleReduction& reduction) {
    const std::string words = absl::StrCat("\nsimulate: the program failed in: ", Command(seed, reduction), "\n");
    words.copy(dying_words, sizeof dying_words - 1);
    const SimulatedKind::Outcome outcome = world_.Run(seed, reduction, nullptr);
    ++done_;
    events_ += outcome.events;
    work_ += outcome.work;
    simulated_ += outcome.simulated;
    last_violation_ = outcome.violation.value_or("");
    return outcome.violation.has_value();
  }

  bool Violates(uint64_t seed) { return Fails(seed, options_.reduction); }

  void PrintProgress(uint64_t seed, absl::Time started) const {
    const double seconds = absl::ToDoubleSeconds(muster::RealClock().Now() - started);
    Say(absl::StrFormat("simulate: %d schedules in %.0f s (%.0f a minute), seed %d; %d events, %d %s, %s simulated",
                        done_, seconds, static_cast<double>(done_) * 60 / std::max(seconds, 1e-3), seed, events_, work_,
                        world_.unit(), absl::FormatDuration(absl::Trunc(simulated_, absl::Seconds(1)))));
  }

  int Found(uint64_t seed) {
    ScheduleReduction reduction = options_.reduction;
    if (options_.shrink) {
      Say(absl::StrCat("simulate: seed ", seed, " fails; looking for less that fails"));
      reduction = world_.Shrink(seed, reduction, [&](const ScheduleReduction& less) { return Fails(seed, less); });
    }
    Say(world_.Text(seed, reduction));
    if (options_.verbose) muster::SetUpLog("");
    const absl::Time started = absl::FromUnixSeconds(1000000000);
    const auto say = [&](absl::Time when, const std::string& line) {
      Say(absl::StrFormat("%10.6f  %s", absl::ToDoubleSeconds(when - started), line));
    };
    const std::string violation =
        world_.Run(seed, reduction, say).violation.value_or("nothing, the second time: not deterministic");
    Say(absl::StrCat("simulate: FOUND in seed ", seed, " after ", done_, " schedules: ", violation));
    Say(absl::StrCat("simulate: again: ", Command(seed, reduction)));
    return 1;
  }

  static void Say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  const Options& options_;
  SimulatedKind& world_;
  std::string last_violation_;
  uint64_t done_ = 0;
  uint64_t found_ = 0;
  uint64_t events_ = 0;
  int64_t work_ = 0;
  absl::Duration simulated_;
};

// Writes one line, like the other commands; returns the exit code.
int Complain(const std::string& what) {
  std::fprintf(stderr, "simulate: %s; accepted: see ./dev simulate --help\n", what.c_str());
  return 2;
}

// Parses "none" or "0,3".
bool ParseFaults(const std::string& text, ScheduleReduction& reduction) {
  if (text.empty()) return true;
  reduction.faults.emplace();
  if (text == "none") return true;
  for (const absl::string_view part : absl::StrSplit(text, ','))
    if (!absl::SimpleAtoi(part, &reduction.faults->emplace_back())) return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Runs the store, its clients and sessions, or supervisors and agents, in a simulated world with random faults.",
      "simulate");
  app.add_option("--world", options.world, "what to simulate: cluster (default) or agents");
  app.add_option("--minutes", options.minutes, "how long to search (default 1)");
  app.add_option("--seed", options.seed, "the first schedule (default: random); alone: only this one");
  app.add_option("--schedules", options.schedules, "how many schedules to run");
  app.add_flag("--shrink", options.shrink, "make a failing schedule smaller");
  app.add_flag("--all", options.all, "continue after a failure; one line each");
  app.add_flag("--verbose", options.verbose, "also print the log of the real code for a failure");
  app.add_option("--plant", options.plant, "plant this bug, to test the search (docs/simulation.md)");
  app.add_option("--ps", options.reduction.num_ps, "run with only N ps (cluster)")->check(CLI::Range(1, 3));
  app.add_option("--workers", options.reduction.num_workers, "run with only N workers (cluster)")
      ->check(CLI::Range(1, 4));
  app.add_option("--steps", options.reduction.last_step, "run only N steps (cluster)")->check(CLI::Range(1, 40));
  app.add_option("--faults", options.faults, "inject only these faults: 0,3 or none");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {  // --help: prints it
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> unknown = app.remaining();
    return Complain(unknown.empty() ? error.what() : "unknown argument " + muster::Quoted(unknown[0]));
  }
  if (!ParseFaults(options.faults, options.reduction)) {
    std::cerr << "simulate: --faults is '" << options.faults << "'; accepted: none, or numbers such as 0,3\n";
    return 2;
  }
  auto world = muster::MakeSimulatedKind(options.world, options.plant);
  if (!world.ok()) {
    std::cerr << "simulate: " << world.status().message() << "\n";
    return 2;
  }
  muster::SetUpLog("", "off");
  std::signal(SIGABRT, OnAbort);
  return Simulator(options, **world).Run();
}
