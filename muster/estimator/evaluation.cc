#include "muster/estimator/evaluation.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/quoted.h"
#include "muster/summary/step_summaries.h"
#include "muster/torch_bridge/module/torch_status.h"
#include "muster/train/hook_api/hook_call.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

constexpr char kEvalGlobalStep[] = "global_step";

// Whether to log the progress: like TensorFlow about ten times, each time below 20 batches. If the number of batches
// isn't known (TensorFlow: each time), the first ten times, then every tenth to the hundredth, and so on.
bool IsEvalProgressDue(int64_t done, const std::optional<int64_t>& steps) {
  if (steps) return *steps < 20 || done % (*steps / 10) == 0 || done == *steps;
  int64_t every = 1;
  while (done > every * 10) every *= 10;
  return done % every == 0;
}

class EvaluationLoop {
 public:
  EvaluationLoop(const CheckpointedModel& model, const EvaluateOptions& options, EventFileWriter& summaries)
      : model_(model), options_(options), writer_(summaries) {
    for (const auto& [name, metric] : model_.spec().eval_metrics) metric->Reset();
  }

  [[nodiscard]] absl::Status Begin() {
    for (const auto& hook : options_.hooks)
      if (hook == nullptr) return WrongOptionError("a hook of the evaluation is null");
    RETURN_IF_ERROR(CallHooks("Begin", options_.hooks, [](SessionHook& hook) { return hook.Begin(); }));
    const SessionContext context = MakeContext();
    return CallHooks("AfterCreateSession", options_.hooks,
                     [&](SessionHook& hook) { return hook.AfterCreateSession(context); });
  }
  bool ShouldStop() const { return stop_ || batches_ == options_.steps.value_or(-1); }
  // Returns false if the input has ended.
  absl::StatusOr<bool> Step(InputReader& input) {
    RunContext context(MakeContext());
    RETURN_IF_ERROR(CallHooks("BeforeRun", options_.hooks, [&](SessionHook& hook) { return hook.BeforeRun(context); }));
    Minibatch minibatch;
    if (!input.Next(minibatch)) return false;
    const StepSummaries::Scope registering(registered_, context.summaries_wanted());
    const double loss = Add(minibatch.To(model_.device()));
    if (IsEvalProgressDue(++batches_, options_.steps))
      LogInfo("Evaluation [", batches_, options_.steps ? absl::StrCat("/", *options_.steps) : "", "]");
    context.MoveTo(model_.global_step(), RealClock().Now());
    const RunValues values{loss, model_.global_step(), /*staleness=*/0, registered_.scalars(), &registered_};
    RETURN_IF_ERROR(
        CallHooks("AfterRun", options_.hooks, [&](SessionHook& hook) { return hook.AfterRun(context, values); }));
    if (context.stop_requested()) stop_ = true;
    return true;
  }
  [[nodiscard]] absl::Status End() {
    const SessionContext context = MakeContext();
    return CallHooks("End", options_.hooks, [&](SessionHook& hook) { return hook.End(context); });
  }
  EvalResults Results() const {
    EvalResults results;
    for (const auto& [name, metric] : model_.spec().eval_metrics) results[name] = metric->Result();
    results["loss"] = batches_ > 0 ? losses_ / static_cast<double>(batches_) : 0;
    results[kEvalGlobalStep] = static_cast<double>(model_.global_step());
    return results;
  }

 private:
  SessionContext MakeContext() {
    return {.is_chief = true,
            .now = RealClock().Now(),
            .global_step = model_.global_step(),
            .summaries = &writer_,
            .request_stop = [this] { stop_ = true; },
            .files = &PosixFileSystem()};
  }
  double Add(const Minibatch& minibatch) {
    const ModelOutputs outputs = model_.Run(minibatch);
    const double loss = LossOf(outputs, Mode::kEval).item<double>();
    const torch::NoGradGuard no_grad;
    for (const auto& [name, metric] : model_.spec().eval_metrics)
      ThrowIfError(CatchTorch(absl::StrCat("metric '", name, "'"), [&, &counted = *metric] {
        counted.Update(outputs.predictions, minibatch);
        return absl::OkStatus();
      }));
    losses_ += loss;
    return loss;
  }

  const CheckpointedModel& model_;
  const EvaluateOptions& options_;
  EventFileWriter& writer_;
  StepSummaries registered_;
  double losses_ = 0;
  int64_t batches_ = 0;
  bool stop_ = false;
};

std::string EvalMetricsLine(absl::Time now, const EvalResults& results) {
  nlohmann::ordered_json line;
  line[kEvalGlobalStep] = static_cast<int64_t>(results.at(kEvalGlobalStep));
  line["wall_time"] = static_cast<double>(absl::ToUnixMillis(now)) / 1000;
  for (const auto& [name, value] : results)
    if (name != kEvalGlobalStep) line[name] = value;
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

EvalResults RunEvaluation(const CheckpointedModel& model, InputReader& input, const EvaluateOptions& options,
                          EventFileWriter& summaries) {
  EvaluationLoop loop(model, options, summaries);
  ThrowIfError(loop.Begin());
  while (!loop.ShouldStop() && ValueOrThrow(loop.Step(input))) {
  }
  ThrowIfError(loop.End());
  return loop.Results();
}

std::string EvalResultsText(const EvalResults& results) {
  return absl::StrJoin(results, ", ", [](std::string* out, const auto& result) {
    const auto& [name, value] = result;
    absl::StrAppend(out, name, " = ",
                    name == kEvalGlobalStep ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.7g", value));
  });
}

absl::Status WriteEvalResults(FileSystem& files, absl::Time now, const std::string& eval_dir,
                              const EvalResults& results, EventFileWriter& summaries) {
  std::vector<ScalarSummary> scalars;
  for (const auto& [name, value] : results)
    if (name != kEvalGlobalStep) scalars.push_back({name, static_cast<float>(value)});
  RETURN_IF_ERROR(summaries.AddScalars(scalars, static_cast<int64_t>(results.at(kEvalGlobalStep))));
  RETURN_IF_ERROR(summaries.Flush());
  const std::string path = JoinPath(eval_dir, kEvalMetricsFile);
  absl::StatusOr<std::string> lines = files.ReadFile(path);
  if (absl::IsNotFound(lines.status())) lines = std::string();
  RETURN_IF_ERROR(lines.status());
  absl::StrAppend(&*lines, EvalMetricsLine(now, results));
  // Writes the whole file, so that nobody reads half a line; a hundred thousand evaluations are some megabytes.
  return WriteFileAtomically(files, path, AsBytes(lines->data(), lines->size()));
}

absl::StatusOr<EvalResults> EvalResultsOfJson(const nlohmann::json& json) {
  if (!json.is_object()) return absl::DataLossError("it isn't an object");
  EvalResults results;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number() && !value.is_null())
      return absl::DataLossError(absl::StrCat(Quoted(name), " is neither a number nor null"));
    results[name] = value.is_null() ? std::nan("") : value.get<double>();
  }
  return results;
}

}  // namespace muster
