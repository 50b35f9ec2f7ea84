// `bench slurm`: what `muster train --on slurm` costs, with a real Slurm on simulated hosts: the time to its first
// line, beside `srun` in an allocation that is there, and `sbatch`; `muster status` of many experiments, of which half
// run and the jobs of the others wait. It needs root. Rows on stdout are JSON, the table is on stderr. Exits with 1 if
// a goal is missed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "bench/support/figure_table.h"
#include "bench/support/lines_of_process.h"
#include "bench/support/on_hosts.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "muster/base/absl_view.h"
#include "muster/base/monotonic.h"
#include "muster/base/status_macros.h"
#include "tests/process/testing/slurm_cluster.h"

namespace muster::bench {
namespace {

constexpr absl::string_view kGreeting = "the first line";
constexpr absl::Duration kPatience = absl::Minutes(2);
constexpr int kMostLooks = 1000;      // of `status`, until all run
constexpr char kLong[] = "long.yml";  // an experiment that runs until it is killed

constexpr Figure kFigures[] = {
    {"srun_ms", FigureGoal::kNone, 0, "`srun echo` in an allocation, until its line was read"},
    {"sbatch_ms", FigureGoal::kNone, 0, "`sbatch`, until it has said the number of the job"},
    {"train_ms", FigureGoal::kNone, 0, "`muster train --on slurm`, until the first line of its task was read"},
    {"beyond_srun_ms", FigureGoal::kAtMost, 1000, "the third less the first"},
    {"status_ms", FigureGoal::kAtMost, 200,
     "`muster status --all` of --experiments, half of which run; the others' jobs wait"},
};

struct Options {
  int rounds = 9;
  int experiments = 100;
  std::string muster = SiblingProgram("muster");
};

double Milliseconds(int64_t from) { return static_cast<double>(MonotonicNanos() - from) * 1e-6; }

class SlurmBench {
 public:
  explicit SlurmBench(const Options& options)
      : options_(options), hosts_(1), slurm_(hosts_, {64}), folder_(hosts_.shared() + "/project") {
    std::filesystem::create_directory(folder_);
    for (const auto& [name, run] : {std::pair("muster.yml", absl::StrCat("echo ", kGreeting)),
                                    std::pair(kLong, std::string("exec sleep infinity"))})
      std::ofstream(absl::StrCat(folder_, "/", name))
          << "project: bench\non: slurm\ntrain:\n  framework: any\n  run: " << run << "\n";
    std::filesystem::current_path(folder_);
  }
  ~SlurmBench() { std::filesystem::current_path("/"); }
  SlurmBench(const SlurmBench&) = delete;
  SlurmBench& operator=(const SlurmBench&) = delete;

  absl::Status Measure() {
    const std::string job = OneLine(slurm_.Ask({"salloc", "--no-shell", "--ntasks=1"}));
    for (int round = 0; round < options_.rounds; ++round) {
      const std::vector<std::function<absl::Status()>> contenders = {
          [&] {
            return Note("srun_ms",
                        {"srun", "--jobid=" + job, "--overlap", "--ntasks=1", "echo", std::string(kGreeting)});
          },
          [&] {
            return Note("sbatch_ms", {"sbatch", "--wait", "--output=/dev/null", "--wrap=true"}, "Submitted batch job");
          },
          [&] { return Note("train_ms", Muster({"train"})); }};
      for (const size_t i : Turns(contenders.size(), round)) RETURN_IF_ERROR(contenders[i]());
      values_["beyond_srun_ms"].push_back(values_["train_ms"].back() - values_["srun_ms"].back());
    }
    for (int i = 0; i < options_.experiments; ++i) {
      std::vector<std::string> train = {"train", "--detach", "--file", kLong};
      if (i % 2 == 0) train.insert(train.end(), {"--slurm", "hold"});
      RETURN_IF_ERROR(Run(Muster(train), "is submitted").status());
    }
    const std::string last = absl::StrCat(options_.experiments + options_.rounds);
    RETURN_IF_ERROR(AwaitRunning());
    for (int round = 0; round < options_.rounds; ++round)
      RETURN_IF_ERROR(Note("status_ms", Muster({"status", "--all"}), "PENDING"));
    return Run(Muster({"kill", "--all"}), absl::StrCat("experiment ", last, ": KILLED")).status();
  }
  bool Report() const { return PrintFigures("slurm", kFigures, values_); }

 private:
  static std::string OneLine(const std::string& said) {
    const size_t at = said.rfind("allocation ");
    return said.substr(at + 11, said.find('\n', at) - at - 11);
  }
  std::vector<std::string> Muster(std::vector<std::string> words) const {
    words.insert(words.begin(), {"env", "MUSTER_HOME=" + hosts_.shared() + "/home", options_.muster});
    return words;
  }
  // Returns the milliseconds until a line with this text, and waits for the end.
  absl::StatusOr<double> Run(const std::vector<std::string>& words, absl::string_view text) const {
    const int64_t start = MonotonicNanos();
    LinesOfProcess process(slurm_.On("h0", words), {});
    double milliseconds = 0;
    std::string lines;
    RETURN_IF_ERROR(process
                        .Read(kPatience,
                              [&](std::string_view line) {
                                absl::StrAppend(&lines, AbslView(line), "\n");
                                if (milliseconds == 0 && absl::StrContains(AbslView(line), text))
                                  milliseconds = Milliseconds(start);
                                return true;
                              })
                        .status());
    if (process.Wait() == 0 && milliseconds > 0) return milliseconds;
    return absl::InternalError(absl::StrCat(words.back(), " failed, or printed too little:\n", lines));
  }
  // Waits until each of those that aren't held runs.
  absl::Status AwaitRunning() const {
    const int wanted = options_.experiments / 2;
    for (int running = 0, looks = 0; running < wanted; ++looks) {
      if (looks == kMostLooks)
        return absl::DeadlineExceededError(absl::StrCat("only ", running, " of ", wanted, " experiments run"));
      running = 0;
      LinesOfProcess process(slurm_.On("h0", Muster({"status", "--all"})), {});
      RETURN_IF_ERROR(process
                          .Read(kPatience,
                                [&running](std::string_view line) {
                                  running += absl::StrContains(AbslView(line), " RUNNING ") ? 1 : 0;
                                  return true;
                                })
                          .status());
      process.Wait();
    }
    return absl::OkStatus();
  }
  absl::Status Note(const std::string& name, const std::vector<std::string>& words,
                    absl::string_view text = kGreeting) {
    ASSIGN_OR_RETURN(const double milliseconds, Run(words, text));
    values_[name].push_back(milliseconds);
    return absl::OkStatus();
  }

  const Options options_;
  const SimulatedHosts hosts_;
  const SlurmCluster slurm_;
  const std::string folder_;
  FigureValues values_;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("What an experiment in a job of Slurm costs: the way to its first line, status of many.", "bench_slurm");
  app.add_option("--rounds", options.rounds, "number of rounds; in each, everything is measured in turns")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--experiments", options.experiments, "experiments for `status`")
      ->capture_default_str()
      ->check(CLI::Range(1, 5000));
  app.add_option("--muster", options.muster, "the muster to measure")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return MeasureOnHosts<SlurmBench>("slurm", SlurmCluster::WhyNot(), options);
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) { return muster::bench::Main(argc, argv); }
