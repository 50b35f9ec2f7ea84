#include "bench/support/meter.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "bench/support/whole_file.h"
#include "muster/base/monotonic.h"
#include "muster/train/threads/error.h"

namespace muster::bench {
namespace {

constexpr int kWarmUpSteps = 20;
// Steps between meetings when losses are compared.
constexpr int64_t kStepsBetweenMeetings = 10;
// TensorFlow's processes take long to start.
constexpr std::chrono::seconds kMeetingLimit(120);

void AwaitOther(const std::string& path) {
  if (!AwaitFile(path, kMeetingLimit))
    throw Error(absl::DeadlineExceededError(absl::StrCat("another worker didn't come: no ", path)));
}

void Meet(const MeterOptions& options, const std::string& name) {
  WriteWhole(absl::StrCat(options.folder, "/", name, ".", options.task), "");
  for (int i = 0; i < options.workers; ++i) AwaitOther(absl::StrCat(options.folder, "/", name, ".", i));
}

// Worker 0 decides how many steps fill the time.
int64_t AgreeOnSteps(const MeterOptions& options, double seconds_a_step) {
  const std::string path = options.folder + "/steps";
  if (options.task == 0)
    WriteWhole(path, absl::StrCat(std::max<int64_t>(5, static_cast<int64_t>(options.seconds / seconds_a_step))));
  AwaitOther(path);
  int64_t steps = 0;
  std::ifstream(path) >> steps;
  return steps;
}

nlohmann::json ToJson(const CpuTime& time) { return {{"user", time.user}, {"system", time.system}}; }

nlohmann::json Timed(const MeterOptions& options, const MeteredStep& step) {
  for (int i = 0; i < kWarmUpSteps / 2; ++i) step(false);
  const auto warm = std::chrono::steady_clock::now();
  for (int i = 0; i < kWarmUpSteps / 2; ++i) step(false);
  constexpr int kCounted = kWarmUpSteps / 2;
  const double seconds_a_step = SecondsSince(warm) / kCounted;
  Meet(options, "warm");
  const int64_t planned = options.in_step ? AgreeOnSteps(options, seconds_a_step) : 0;
  const CpuTime cpu = CpuTimeOf(getpid()), ps_cpu = CpuTimeOf(options.ps);
  const int64_t begin = MonotonicNanos();
  const auto start = std::chrono::steady_clock::now();
  int64_t steps = 0;
  while (options.in_step ? steps < planned : SecondsSince(start) < options.seconds) {
    step(false);
    ++steps;
  }
  const double seconds = SecondsSince(start);
  return {{"steps", steps},
          {"seconds", seconds},
          {"begin_ns", begin},
          {"cpu", ToJson(CpuTimeOf(getpid()) - cpu)},
          {"ps_cpu", ToJson(CpuTimeOf(options.ps) - ps_cpu)}};
}

nlohmann::json WithLosses(const MeterOptions& options, const MeteredStep& step) {
  std::vector<double> losses;
  for (int64_t i = 0; i < options.steps; ++i) {
    // Slower workers aren't left behind: losses of workers that are far apart can't be compared.
    if (i % kStepsBetweenMeetings == 0) Meet(options, absl::StrCat("step", i));
    losses.push_back(step(true));
  }
  return {{"losses", losses}};
}

}  // namespace

void Measure(const MeterOptions& options, const MeteredStep& step) {
  Meet(options, "started");
  const nlohmann::json result = options.steps > 0 ? WithLosses(options, step) : Timed(options, step);
  WriteWhole(absl::StrCat(options.folder, "/result.", options.task, ".json"), result.dump() + "\n");
  Meet(options, "done");
}

}  // namespace muster::bench
