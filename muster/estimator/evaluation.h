// One evaluation: runs the batches of an input function through a model, between hooks, and writes the results.
// Estimator::Evaluate consists of these functions. Used by one thread.
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

// Returns the metrics, "loss" and "global_step" over all batches, or `options.steps` of them, and logs 'Evaluation
// [10/100]' now and then. Calls the hooks as docs/estimator.md says. Throws Error: those of input, model, metrics and
// hooks; a missing, non-scalar or non-finite loss.
EvalResults RunEvaluation(const CheckpointedModel& model, InputReader& input, const EvaluateOptions& options,
                          EventFileWriter& summaries);

// "accuracy = 0.97, global_step = 100, loss = 0.25".
std::string EvalResultsText(const EvalResults& results);

// In the folder of an evaluation.
inline constexpr char kEvalMetricsFile[] = "metrics.jsonl";

// Writes all numbers but the step as scalars to `summaries`; then appends the line
// {"global_step":100,"wall_time":…,"accuracy":0.97,…} to EVAL_DIR/metrics.jsonl, which is on the disk when this
// returns. A number that isn't finite becomes null.
[[nodiscard]] absl::Status WriteEvalResults(FileSystem& files, absl::Time now, const std::string& eval_dir,
                                            const EvalResults& results, EventFileWriter& summaries);

// Reads such a line, or "results" of an exporter's best.json: {"loss": 0.25, …}, where null stands for a number that
// isn't finite. DataLoss: it isn't an object, or contains anything but numbers.
absl::StatusOr<EvalResults> EvalResultsOfJson(const nlohmann::json& json);

}  // namespace muster
