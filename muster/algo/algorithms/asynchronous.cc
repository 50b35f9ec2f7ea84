#include "muster/algo/algorithms/asynchronous.h"

#include "muster/algo/sources/traced_gradients.h"
#include "muster/algo/sources/train_in_place.h"
#include "muster/base/status_macros.h"

namespace muster {

AsynchronousAlgorithm::AsynchronousAlgorithm(GradientSource& source, PlacementResult placement,
                                             const OptimizerSpec& optimizer)
    : source_(source), binding_{source.variables(), std::move(placement), optimizer, {}} {
  for (size_t i = 0; i < binding_.variables.size(); ++i) binding_.values.push_back(source.value(i));
}

AsynchronousAlgorithm::~AsynchronousAlgorithm() { source_.AnnounceGradients({}); }

void AsynchronousAlgorithm::Begin(StoreClient& client) {
  tables_.Begin(client);
  TrainInPlace(client, source_, binding_);
  parts_.emplace(client);
  if (!parts_->Possible()) return source_.AnnounceGradients({});
  source_.AnnounceGradients([this](size_t variable) {
    if (in_parts_) parts_->Ready(variable, source_.gradient(variable));
  });
}

absl::StatusOr<StepResult> AsynchronousAlgorithm::StepInParts(StoreClient& client, bool chief) {
  parts_->Begin();
  absl::StatusOr<double> loss = TracedGradients(source_, client, gradient_tap());
  if (loss.ok())
    if (absl::Status rows = tables_.Push(); !rows.ok()) loss = std::move(rows);
  if (!loss.ok()) {
    parts_->Abandon();
    return loss.status();
  }
  ASSIGN_OR_RETURN(
      const StorePushResult pushed,
      parts_->Finish([this](size_t variable) { return source_.gradient(variable); }, chief, client.track()));
  return StepResult{*loss, pushed.global_step, pushed.staleness};
}

absl::StatusOr<StepResult> AsynchronousAlgorithm::Step(StoreClient& client) {
  // Batch-norm statistics are each worker's own. The model is saved with the chief's.
  const bool chief = client.chief_epoch() != 0;
  in_parts_ = parts_.has_value() && parts_->Possible();
  if (in_parts_) return StepInParts(client, chief);
  ASSIGN_OR_RETURN(const double loss, TracedGradients(source_, client, gradient_tap()));
  RETURN_IF_ERROR(tables_.Push());
  ASSIGN_OR_RETURN(
      const StoreClient::StepResult pushed,
      client.PushPull([this](size_t variable) { return source_.gradient(variable); }, {.publish_buffers = chief}));
  return StepResult{loss, pushed.global_step, pushed.staleness};
}

}  // namespace muster
