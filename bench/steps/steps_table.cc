#include "bench/steps/steps_table.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/steps/steps_measurement.h"
#include "muster/observe/trace_part.h"
#include "muster/observe/trace_summary.h"

namespace muster::bench {
namespace {

// Activities with their own columns; the rest of a step is in "other".
constexpr std::array<Activity, 7> kColumns = {Activity::kCompute, Activity::kPush,   Activity::kWait,  Activity::kApply,
                                              Activity::kPull,    Activity::kReduce, Activity::kAnswer};

// A line of the table: microseconds per minibatch for a kind of task.
struct Times {
  double step = 0;
  std::array<double, kColumns.size()> parts = {};
  CpuTime cpu;
  double cores = 0;  // share of all cores' time
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Reads the steps of the task's thread that began while `worker` was measured; all tasks of a host have the same clock.
std::optional<StepTimesTable> ReadTable(const std::string& path, const std::string& thread,
                                        const MeasuredWorker& worker) {
  const std::string whole = ReadFile(path);
  const auto part = ParsePart(whole);
  if (!part.ok()) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), std::string(part.status().message()).c_str());
    return std::nullopt;
  }
  if (part->left_out > 0)
    std::fprintf(stderr, "%s: %d events are left out\n", path.c_str(), static_cast<int>(part->left_out));
  const auto end = worker.begin + static_cast<int64_t>(worker.seconds * 1e9);
  std::string measured = PartHead(part->identity);
  const auto add = [&measured](std::string_view line) { measured.append(line).append("\n"); };
  for (const std::string_view line : part->metadata) add(line);
  for (const std::string_view line : part->events) {
    const std::optional<int64_t> time = TimeOf(line);
    if (time && *time >= worker.begin && *time <= end) add(line);
  }
  const auto tables = SummarizeTrace(measured);
  if (!tables.ok()) return std::nullopt;
  for (const StepTimesTable& table : *tables)
    if (table.track == thread) return table;
  return std::nullopt;
}

// Adds the mean times of a task's steps; `share` is how many of them make a minibatch.
void Add(const StepTimesTable& table, double share, Times& to) {
  to.step += table.whole.mean_us * share;
  for (const StepTimesRow& row : table.rows)
    for (size_t i = 0; i < kColumns.size(); ++i)
      if (row.what == ActivityName(kColumns[i])) to.parts[i] += row.mean_us * share;
}

void Print(const StepsWay& way, const char* who, double rate, const Times& times) {
  nlohmann::ordered_json row = {{"bench", "steps"},    {"table", NameOf(way)},   {"model", way.model},
                                {"rule", way.rule},    {"workers", way.workers}, {"who", who},
                                {"steps_per_s", rate}, {"step_us", times.step}};
  const bool first = std::string_view(who) == "worker";
  std::string line = absl::StrFormat("%-32s %-7s %8s", first ? NameOf(way) : "", who,
                                     first ? absl::StrFormat("%.*f", rate < 100 ? 1 : 0, rate) : "");
  const auto add = [&](const std::string& name, double value) {
    row[name] = value;
    absl::StrAppend(&line, value > 0 ? absl::StrFormat(" %8.0f", value) : absl::StrFormat(" %8s", "-"));
  };
  absl::StrAppendFormat(&line, " %8.0f", times.step);
  double other = times.step;
  for (size_t i = 0; i < kColumns.size(); ++i) {
    add(absl::StrCat(ActivityName(kColumns[i]), "_us"), times.parts[i]);
    other -= times.parts[i];
  }
  // For a plain process only the whole step is known.
  add("other_us", way.mode == kLocal ? 0 : std::max(other, 0.0));
  add("user_us", times.cpu.user);
  add("system_us", times.cpu.system);
  row["cores"] = times.cores;
  std::printf("%s\n", row.dump().c_str());
  std::fprintf(stderr, "%s %6.1f%%\n", line.c_str(), 100 * times.cores);
}

// Sets the processor time from that of `minibatches` minibatches in `seconds` seconds.
void SetCpu(const CpuTime& cpu, double minibatches, double seconds, Times& to) {
  to.cpu = {cpu.user * 1e6 / minibatches, cpu.system * 1e6 / minibatches};
  to.cores = (cpu.user + cpu.system) / seconds / std::max(1U, std::thread::hardware_concurrency());
}

bool PrintWay(const StepsWay& way, const StepsSettings& settings, const std::string& folder) {
  StepsWay traced = way;
  traced.traced = way.mode != kLocal;
  const StepsSample sample = MeasureSteps(traced, settings, folder);
  if (sample.workers.empty()) return false;
  Times workers, ps;
  CpuTime cpu;
  double steps = 0;
  for (size_t i = 0; i < sample.workers.size(); ++i) {
    const MeasuredWorker& worker = sample.workers[i];
    steps += worker.steps;
    cpu = {cpu.user + worker.cpu.user, cpu.system + worker.cpu.system};
    if (way.mode == kLocal) continue;
    const auto table = ReadTable(TracePart(way, folder, "worker", static_cast<int>(i)), "training", worker);
    if (!table) return false;
    Add(*table, 1.0 / way.workers, workers);
  }
  const MeasuredWorker& first = sample.workers[0];
  if (way.mode == kLocal) workers.step = 1e6 * way.workers / sample.rate();
  SetCpu(cpu, steps, first.seconds, workers);
  Print(way, "worker", sample.rate(), workers);
  if (way.has_ps()) {
    const auto table = ReadTable(TracePart(way, folder, "ps", 0), "service", first);
    if (!table && way.apply == "server") return false;
    if (table) Add(*table, static_cast<double>(table->steps) / steps, ps);
    SetCpu(sample.ps_cpu, steps, first.seconds, ps);
    Print(way, "ps", sample.rate(), ps);
  }
  std::fprintf(stderr, "%-32s %-115s %6.1f%%\n", "", "nobody, or other programs",
               100 * std::max(0.0, 1 - workers.cores - ps.cores));
  return true;
}

// Returns what the table's columns mean.
std::string Legend() {
  return R"(Rows: a worker (the mean of all), and the ps; all in microseconds per measured minibatch.
  step     for a worker, from minibatch to minibatch; for the ps, how long a minibatch keeps it busy
  compute  forward and backward, including what is sent meanwhile
  push, wait, apply, pull, reduce, answer, other   as in the table of a trace: docs/observe.md
  user, system   processor time of the process, all its threads
  cores    the share of all this machine's cores that these processes had
"step" includes waiting for a core: what it has beyond user + system is waiting, for others or for a core.
)";
}

}  // namespace

bool PrintStepsTable(const std::vector<StepsWay>& ways, const StepsSettings& settings, const std::string& folder) {
  std::string headings = absl::StrFormat("%-32s %-7s %8s %8s", "microseconds a minibatch", "who", "steps/s", "step");
  for (const Activity activity : kColumns) absl::StrAppendFormat(&headings, " %8s", ActivityName(activity));
  for (const char* more : {"other", "user", "system"}) absl::StrAppendFormat(&headings, " %8s", more);
  bool good = true;
  const StepsWay* before = nullptr;
  for (const StepsWay& way : ways) {
    if (before == nullptr || way.model != before->model)
      std::fprintf(stderr, "\n%s, %s, %d workers\n%s %7s\n", way.model.c_str(), way.rule.c_str(), way.workers,
                   headings.c_str(), "cores");
    before = &way;
    if (PrintWay(way, settings, folder)) continue;
    std::fprintf(stderr, "%-32s FAILED\n", NameOf(way).c_str());
    good = false;
  }
  std::fprintf(stderr, "\n%s", Legend().c_str());
  return good;
}

}  // namespace muster::bench
