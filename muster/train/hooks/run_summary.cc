#include "muster/train/hooks/run_summary.h"

#include <algorithm>

#include "muster/base/status_macros.h"
#include "muster/summary/hparams.h"
#include "muster/summary/summary_values.h"

namespace muster {
namespace {

constexpr int64_t kStepOfTheRun = 0;

}  // namespace

std::string SummaryOf(const RunValues& values) {
  std::string summary;
  const bool own_loss = std::any_of(values.scalars.begin(), values.scalars.end(),
                                    [](const auto& scalar) { return scalar.first == "loss"; });
  if (!own_loss) AppendScalar(summary, "loss", static_cast<float>(values.loss));
  for (const auto& [tag, value] : values.scalars) AppendScalar(summary, tag, static_cast<float>(value));
  return values.summaries == nullptr ? summary : summary + values.summaries->EncodedOthers();
}

absl::Status WholeRunSummary::Write(EventFileWriter& writer, const StepSummaries& summaries) {
  if (summaries.hparams() != hparams_) {
    hparams_ = summaries.hparams();
    RETURN_IF_ERROR(writer.AddSummary(hparams_, kStepOfTheRun));
  }
  if (summaries.graph() == graph_) return absl::OkStatus();
  graph_ = summaries.graph();
  return writer.AddGraph(graph_, kStepOfTheRun);
}

absl::Status WholeRunSummary::End(EventFileWriter& writer, absl::Time now) const {
  if (hparams_.empty()) return absl::OkStatus();
  std::string end;
  AppendHParamsEnd(end, now);
  return writer.AddSummary(end, kStepOfTheRun);
}

}  // namespace muster
