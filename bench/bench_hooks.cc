// `bench hooks`: the cost of hooks in nanoseconds per step, each alone and as the default set of a session
// (StepCounter, SummarySaver and CheckpointSaver of a chief with a checkpoint_dir). Measured as users have them: a
// whole session runs steps that do nothing, in turns without any hook, with one, with the default set; the extra time
// compared with no hook is the hook's. Intervals are the defaults, so the figures include a summary every 100 steps,
// but not the checkpoint every 600 seconds. JSON lines on stdout, a table on stderr; exit code 1 if the goal is missed.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/support/rounds.h"
#include "muster/algo/sources/quadratic_source.h"
#include "muster/base/log.h"
#include "muster/observe/tracer.h"
#include "muster/store/testing/simulated_store.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/session/session.h"

namespace muster {
namespace {

constexpr double kGoalMicroseconds = 5;  // for the default set

constexpr int64_t kFar = 1'000'000'000'000;  // a step that is never reached

// A step that costs nothing, on an existing model.
class NoStep final : public Algorithm {
 public:
  explicit NoStep(GradientSource& source)
      : source_(source),
        binding_{source.variables(),
                 *PlaceVariables(source.variables(), 1, Placement::kRoundRobin, {}),
                 RuleSpec{.learning_rate = 0.1},
                 {}} {
    for (size_t i = 0; i < binding_.variables.size(); ++i) binding_.values.push_back(source.value(i));
  }
  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  absl::StatusOr<StepResult> Step(StoreClient&) override {
    ++step_;
    if (gradient_tap().observed()) {
      const auto gradient = [this](size_t i) { return source_.gradient(i); };
      gradient_tap().Show({source_.variables(), gradient, {}});
    }
    return StepResult{.loss = 0.5, .global_step = step_};
  }

 private:
  GradientSource& source_;
  ModelBinding binding_;
  int64_t step_ = 0;
};

using MakeHooks = std::function<std::vector<std::shared_ptr<SessionHook>>()>;
struct Case {
  std::string name;
  bool defaults = false;  // as a chief's session has without asking
  MakeHooks hooks = [] { return std::vector<std::shared_ptr<SessionHook>>(); };
};

Case One(const std::string& name, std::function<std::shared_ptr<SessionHook>()> make) {
  return {name, false, [make = std::move(make)] { return std::vector<std::shared_ptr<SessionHook>>{make()}; }};
}

std::vector<Case> Cases() {
  const Terminal terminal{.is_terminal = true, .width = [] { return 100; }, .write = [](std::string_view) {}};
  return {
      {.name = "default set", .defaults = true},
      One("StepCounter", [] { return StepCounter(); }),
      One("SummarySaver", [] { return SummarySaver({.save_steps = 100}); }),
      One("CheckpointSaver", [] { return CheckpointSaver({.save_interval = absl::Seconds(600)}); }),
      One("StopAtStep", [] { return StopAtStep({.last_step = kFar}); }),
      One("NanTensor", [] { return NanTensor(); }),
      One("LoggingTensor", [] { return LoggingTensor(); }),
      One("GlobalStepWaiter", [] { return GlobalStepWaiter(0); }),
      One("FinalOps", [] { return std::make_shared<FinalOps>(std::map<std::string, FinalOps::Op>()); }),
      One("FeedFn", [] { return FeedFn([] {
                           return std::map<std::string, std::any>{{"x", 1}};
                         }); }),
      One("StopIfNoDecrease", [] { return StopIfNoDecrease({.max_steps_without_improvement = kFar}); }),
      One("LearningRateLogger", [] { return LearningRateLogger(); }),
      One("Profiler (not recording)", [] { return Profiler({.first_step = kFar, .last_step = kFar}); }),
      One("ProgressBar", [terminal] { return ProgressBar({.last_step = kFar, .terminal = terminal}); }),
      One("GradientNorms", [] { return GradientNorms({.save_steps = 100}); }),
      One("GradientHistograms", [] { return GradientHistograms({.save_steps = 100}); }),
  };
}

// Returns nanoseconds per step.
absl::StatusOr<double> Measure(const Case& with, int steps, size_t width) {
  SimulatedStore store(1, {"chief:0"}, {.lease = absl::Hours(1000)});
  QuadraticSource source({{.name = "w", .shape = {static_cast<int64_t>(width)}}});
  NoStep algorithm(source);
  const MonotonicTraceClock trace_clock;
  auto tracer = Tracer::Open({.task = "chief:0"}, store.files, trace_clock);
  if (!tracer.ok()) return tracer.status();
  const auto client = store.Client("chief:0");
  SessionOptions options{.checkpoint_dir = "model"};
  if (!with.defaults) {
    options.save_checkpoint_secs = 0;
    options.save_summaries_steps = 0;
    options.log_step_count_steps = 0;
  }
  Session session({.client = client.get(),
                   .algorithm = &algorithm,
                   .loop = &store.loop,
                   .files = &store.files,
                   .clock = &RealClock(),
                   .is_chief = true,
                   .tracer = tracer->get()},
                  options, with.hooks());
  absl::Status status = session.Start();
  const int warm_up = steps / 10;
  for (int i = 0; i < warm_up && status.ok(); ++i) status = session.Run();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps && status.ok(); ++i) status = session.Run();
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
  if (!status.ok()) return status;
  return taken.count() / steps;
}

void Report(const std::string& name, const char* kind, const std::vector<double>& figures) {
  const auto [middle, least, most] = bench::SpreadOf(figures);
  std::printf("{\"bench\":\"hooks\",\"hook\":\"%s\",\"%s\":%.0f,\"least\":%.0f,\"most\":%.0f}\n", name.c_str(), kind,
              middle, least, most);
  std::fflush(stdout);
  std::fprintf(stderr, "%-28s %10.0f %10.0f %10.0f\n", name.c_str(), middle, least, most);
}

int Main(int argc, char** argv) {
  CLI::App app("Nanoseconds a step that hooks cost, each alone and the default set of a session together");
  int steps = 100000;
  int rounds = 5;
  size_t width = 1000;
  app.add_option("--steps", steps, "steps in each measurement")
      ->check(CLI::Range(100, 100000000))
      ->capture_default_str();
  app.add_option("--rounds", rounds, "number of rounds; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--width", width, "number of gradients to look at")
      ->check(CLI::Range(1, 100000000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  // Hooks that log make their lines, but these are shown nowhere.
  SetUpLog("", "error");

  const std::vector<Case> cases = Cases();
  std::vector<double> without;
  std::vector<std::vector<double>> costs(cases.size());
  for (int round = 0; round < rounds; ++round) {
    const auto bare = Measure({.name = "none"}, steps, width);
    if (!bare.ok()) {
      std::fprintf(stderr, "%s\n", bare.status().ToString().c_str());
      return 1;
    }
    without.push_back(*bare);
    for (size_t i = 0; i < cases.size(); ++i) {
      const auto taken = Measure(cases[i], steps, width);
      if (!taken.ok()) {
        std::fprintf(stderr, "%s: %s\n", cases[i].name.c_str(), taken.status().ToString().c_str());
        return 1;
      }
      costs[i].push_back(*taken - *bare);
    }
  }
  std::fprintf(stderr, "%-28s %10s %10s %10s\n", "hook", "ns/step", "least", "most");
  Report("a session without hooks", "session_ns_per_step", without);
  for (size_t i = 0; i < cases.size(); ++i) Report(cases[i].name, "ns_per_step", costs[i]);
  const double microseconds = bench::Median(costs[0]) / 1000;
  const bool met = microseconds <= kGoalMicroseconds;
  std::fprintf(stderr, "the default set takes %.2f us a step; goal: at most %.0f us: %s\n", microseconds,
               kGoalMicroseconds, met ? "met" : "MISSED");
  return met ? 0 : 1;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
