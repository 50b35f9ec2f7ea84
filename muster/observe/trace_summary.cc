#include "muster/observe/trace_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace muster {
namespace {

struct Event {
  double begin = 0;  // microseconds
  double duration = 0;
  size_t activity = 0;
  double nested = 0;  // of the events within
};

struct Thread {
  std::string name;
  std::vector<Event> events;
};

using ThreadId = std::pair<int64_t, int64_t>;  // process, thread

struct Threads {
  std::map<int64_t, std::string> tasks;
  std::map<ThreadId, Thread> threads;
};

void Read(const nlohmann::json& event, Threads& threads) {
  const std::string phase = event.value("ph", "");
  const std::string name = event.value("name", "");
  const auto pid = event.value("pid", int64_t{0});
  const ThreadId id = {pid, event.value("tid", int64_t{0})};
  if (phase == "M" && event.contains("args") && event.at("args").contains("name")) {
    if (name == "process_name") threads.tasks[pid] = event.at("args").value("name", "");
    if (name == "thread_name") threads.threads[id].name = event.at("args").value("name", "");
  }
  if (phase != "X") return;
  const auto found = std::find(kActivityNames.begin(), kActivityNames.end(), name);
  if (found == kActivityNames.end()) return;
  threads.threads[id].events.push_back({.begin = event.value("ts", 0.0),
                                        .duration = event.value("dur", 0.0),
                                        .activity = static_cast<size_t>(found - kActivityNames.begin())});
}

// Makes the row of an activity from its values, one per step.
StepTimesRow RowOf(std::string what, std::vector<double> values, double all) {
  StepTimesRow row{.what = std::move(what)};
  double sum = 0;
  for (const double value : values) sum += value;
  std::sort(values.begin(), values.end());
  const auto at = [&values](double q) {
    const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(values.size())));
    return values[std::max<size_t>(rank, 1) - 1];
  };
  row.median_us = at(0.5);
  row.p99_us = at(0.99);
  row.mean_us = sum / static_cast<double>(values.size());
  row.percent = all > 0 ? 100 * sum / all : 0;
  return row;
}

// Adds each event's own time to the step that contains it.
class Steps {
 public:
  explicit Steps(std::vector<Event> events) {
    // An outer event comes before those that it contains.
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      if (a.begin != b.begin) return a.begin < b.begin;
      return a.duration != b.duration ? a.duration > b.duration : a.activity < b.activity;
    });
    for (const Event& event : events) {
      CloseUntil(event.begin);
      if (event.activity == 0) {
        if (!open_.empty()) continue;  // no step lies in another
        for (auto& values : values_) values.push_back(0);
      }
      if (event.activity == 0 || !open_.empty()) open_.push_back(event);
    }
    CloseUntil(std::numeric_limits<double>::infinity());
  }

  StepTimesTable Table(const std::string& task, const std::string& track) {
    StepTimesTable table{.task = task, .track = track, .steps = values_[0].size(), .whole = {}, .rows = {}};
    if (table.steps == 0) return table;
    double all = 0;
    for (size_t step = 0; step < table.steps; ++step)
      for (const auto& values : values_) all += values[step];
    std::vector<double> whole(table.steps);
    for (const auto& values : values_)
      for (size_t step = 0; step < table.steps; ++step) whole[step] += values[step];
    table.whole = RowOf(ActivityName(Activity::kStep), whole, all);
    for (size_t i = 1; i < kActivities; ++i)
      if (std::any_of(values_[i].begin(), values_[i].end(), [](double value) { return value > 0; }))
        table.rows.push_back(RowOf(kActivityNames[i], values_[i], all));
    table.rows.push_back(RowOf("other", values_[0], all));
    return table;
  }

 private:
  void CloseUntil(double time) {
    while (!open_.empty() && open_.back().begin + open_.back().duration <= time + 1e-3) {
      const Event event = open_.back();
      open_.pop_back();
      values_[event.activity].back() += std::max(event.duration - event.nested, 0.0);
      if (!open_.empty()) open_.back().nested += event.duration;
    }
  }

  std::vector<Event> open_;                              // the innermost last; the first is a step
  std::array<std::vector<double>, kActivities> values_;  // one per step; [kStep]: the time in no activity
};

}  // namespace

absl::StatusOr<std::vector<StepTimesTable>> SummarizeTrace(std::string_view trace) {
  Threads threads;
  for (size_t at = 0; at < trace.size();) {
    const size_t end = std::min(trace.find('\n', at), trace.size());
    std::string_view line = trace.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.back() == ',') line.remove_suffix(1);
    if (line.substr(0, 2) != "{\"" || line.empty()) continue;
    const nlohmann::json event = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (event.is_object() && event.contains("ph")) Read(event, threads);
  }
  if (threads.tasks.empty())
    return absl::InvalidArgumentError(
        "it is no trace that muster wrote: it names no task (accepted: what --trace or `muster trace merge` writes)");
  std::vector<StepTimesTable> tables;
  for (auto& [id, thread] : threads.threads) {
    StepTimesTable table = Steps(std::move(thread.events)).Table(threads.tasks[id.first], thread.name);
    if (table.steps > 0) tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace muster
