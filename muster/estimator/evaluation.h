// One evaluation: the batches of an input function through a model, between hooks, and where its results go. What
// Estimator::Evaluate is made of. Used by one thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/estimator/checkpointed_model.h"
#include "muster/estimator/estimator.h"
#include "muster/estimator/model/input_fn.h"
#include "muster/summary/event_file_writer.h"

namespace muster {

// The metrics, "loss" and "global_step" over all batches, or `options.steps` of them, with the log line
// 'Evaluation [10/100]' now and then. Calls the hooks as docs/estimator.md says. Throws Error: those of input, model,
// metrics and hooks; a loss that isn't there, no scalar or not finite.
EvalResults RunEvaluation(const CheckpointedModel& model, InputReader& input, const EvaluateOptions& options,
                          EventFileWriter& summaries);

// "accuracy = 0.97, global_step = 100, loss = 0.25".
std::string EvalResultsText(const EvalResults& results);

// In the folder of an evaluation.
inline constexpr char kEvalMetricsFile[] = "metrics.jsonl";

// All numbers but the step as scalars of `summaries`; then a line {"global_step":100,"wall_time":…,"accuracy":0.97,…}
// of EVAL_DIR/metrics.jsonl, on the disk when this returns. A number that isn't finite is null there.
[[nodiscard]] absl::Status WriteEvalResults(FileSystem& files, absl::Time now, const std::string& eval_dir,
                                            const EvalResults& results, EventFileWriter& summaries);

// What such a line, or "results" of an exporter's best.json, says: {"loss": 0.25, …}, where null is a number that isn't
// finite. DataLoss: it is no object, or has something else than numbers.
absl::StatusOr<EvalResults> EvalResultsOfJson(const nlohmann::json& json);

}  // namespace muster
