#include "muster/estimator/distributed/early_stopping_by_evaluation.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/checkpoint/strict_json.h"
#include "muster/cluster/quoted.h"
#include "muster/estimator/evaluation.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

// An evaluation metric, "loss" say, by global step.
using MetricByStep = std::map<int64_t, double>;
// Returns why training shall stop; empty: it shall continue.
using EvalVerdict = std::function<std::string(const MetricByStep&)>;

absl::StatusOr<EvalResults> ParseEvalLine(absl::string_view line) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ParseStrictJson(std::string_view(line.data(), line.size()), 1));
  ASSIGN_OR_RETURN(EvalResults results, EvalResultsOfJson(json));
  results.erase("wall_time");
  const auto step = results.find("global_step");
  if (step == results.end() || !(step->second >= 0)) return absl::DataLossError("it has no \"global_step\"");
  return results;
}

MetricByStep MetricOf(const std::map<int64_t, EvalResults>& evaluations, const EvalStopOptions& options) {
  MetricByStep values;
  for (const auto& [step, results] : evaluations) {
    const auto found = results.find(options.metric);
    if (step >= options.min_steps && found != results.end()) values[step] = found->second;
  }
  return values;
}

// Without this warning, a mistyped metric would never stop anything, and nobody would know why.
void WarnOfMissingMetric(const std::map<int64_t, EvalResults>& evaluations, const std::string& metric,
                         const std::string& eval_dir) {
  std::set<std::string> names;
  for (const auto& [step, results] : evaluations)
    for (const auto& [name, value] : results) names.insert(name);
  if (names.empty() || names.contains(metric)) return;
  LogLineOnce(LogLevel::kWarning, absl::StrCat("early stopping: no evaluation in ", eval_dir, " has ", Quoted(metric),
                                               "; there are: ", absl::StrJoin(names, ", ")));
}

std::shared_ptr<SessionHook> StopByEvaluations(const Estimator& estimator, EvalStopOptions options,
                                               EvalVerdict verdict) {
  if (options.eval_dir.empty()) options.eval_dir = estimator.EvalDir();
  const StopCheck check = options.check;
  return StopIf(
      [options = std::move(options), verdict = std::move(verdict)](const RunValues&) {
        const auto evaluations = ValueOrThrow(ReadEvalMetrics(PosixFileSystem(), options.eval_dir));
        WarnOfMissingMetric(evaluations, options.metric, options.eval_dir);
        const std::string why = verdict(MetricOf(evaluations, options));
        if (!why.empty()) LogInfo(why);
        return !why.empty();
      },
      check);
}

// True at any of the steps, whatever came after it.
std::string NoImprovement(const MetricByStep& values, const EvalStopOptions& options, int64_t max_steps,
                          bool decrease) {
  std::optional<double> best;
  std::optional<int64_t> since;  // the step of the best value, or of the first
  for (const auto& [step, value] : values) {
    if (!since) since = step;
    if (!std::isnan(value) && (!best || (decrease ? value < *best : value > *best))) {
      best = value;
      since = step;
    }
    const int64_t steps = step - *since;
    if (steps >= max_steps)
      return absl::StrCat("No ", decrease ? "decrease" : "increase", " in metric ", Quoted(options.metric), " for ",
                          steps, " steps, which is greater than or equal to max steps (", max_steps,
                          ") configured for early stopping.");
  }
  return "";
}

std::string BeyondThreshold(const MetricByStep& values, const EvalStopOptions& options, double threshold, bool higher) {
  for (const auto& [step, value] : values) {
    if (higher ? value > threshold : value < threshold)
      return absl::StrCat("At step ", step, ", metric ", Quoted(options.metric), " has value ", value, " which is ",
                          higher ? "higher" : "lower", " than the configured threshold (", threshold,
                          ") for early stopping.");
  }
  return "";
}

std::shared_ptr<SessionHook> StopIfNotImproved(const Estimator& estimator, int64_t max_steps, bool decrease,
                                               const EvalStopOptions& options) {
  if (max_steps <= 0)
    throw Error(WrongOptionError(absl::StrCat("early stopping: max_steps_without_", decrease ? "decrease" : "increase",
                                              " is ", max_steps, "; accepted: 1 or more")));
  return StopByEvaluations(estimator, options, [=](const MetricByStep& values) {
    return NoImprovement(values, options, max_steps, decrease);
  });
}

std::shared_ptr<SessionHook> StopIfBeyond(const Estimator& estimator, double threshold, bool higher,
                                          const EvalStopOptions& options) {
  if (std::isnan(threshold)) throw Error(WrongOptionError("early stopping: threshold is NaN; accepted: a number"));
  return StopByEvaluations(estimator, options, [=](const MetricByStep& values) {
    return BeyondThreshold(values, options, threshold, higher);
  });
}

}  // namespace

absl::StatusOr<std::map<int64_t, EvalResults>> ReadEvalMetrics(FileSystem& files, const std::string& eval_dir) {
  std::map<int64_t, EvalResults> evaluations;
  const std::string path = JoinPath(eval_dir, kEvalMetricsFile);
  const absl::StatusOr<std::string> text = files.ReadFile(path);
  if (absl::IsNotFound(text.status())) return evaluations;
  RETURN_IF_ERROR(text.status());
  const std::vector<absl::string_view> lines = absl::StrSplit(*text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    absl::StatusOr<EvalResults> results = ParseEvalLine(lines[i]);
    if (results.ok()) {
      const auto step = static_cast<int64_t>(results->at("global_step"));
      evaluations[step] = *std::move(results);
    } else if (i + 1 < lines.size()) {  // the last has no end of line yet: it is being written
      return absl::DataLossError(absl::StrCat(path, ", line ", i + 1, ": ", results.status().message()));
    }
  }
  return evaluations;
}

std::shared_ptr<SessionHook> StopIfEvalHasNoDecrease(const Estimator& estimator, int64_t max_steps_without_decrease,
                                                     const EvalStopOptions& options) {
  return StopIfNotImproved(estimator, max_steps_without_decrease, /*decrease=*/true, options);
}

std::shared_ptr<SessionHook> StopIfEvalHasNoIncrease(const Estimator& estimator, int64_t max_steps_without_increase,
                                                     const EvalStopOptions& options) {
  return StopIfNotImproved(estimator, max_steps_without_increase, /*decrease=*/false, options);
}

std::shared_ptr<SessionHook> StopIfEvalIsHigher(const Estimator& estimator, double threshold,
                                                const EvalStopOptions& options) {
  return StopIfBeyond(estimator, threshold, /*higher=*/true, options);
}

std::shared_ptr<SessionHook> StopIfEvalIsLower(const Estimator& estimator, double threshold,
                                               const EvalStopOptions& options) {
  return StopIfBeyond(estimator, threshold, /*higher=*/false, options);
}

}  // namespace muster
