#include "muster/algo/algorithms/synchronous.h"

#include <utility>

#include "muster/algo/sources/traced_gradients.h"
#include "muster/algo/sources/train_in_place.h"
#include "muster/base/status_macros.h"

namespace muster {

SynchronousAlgorithm::SynchronousAlgorithm(GradientSource& source, PlacementResult placement,
                                           const OptimizerSpec& optimizer, const SynchronousOptions& options)
    : source_(source), binding_{source.variables(), std::move(placement), optimizer, {}} {
  binding_.gate = {.kind = GateKind::kSynchronous,
                   .replicas_to_aggregate = options.replicas_to_aggregate,
                   .total_replicas = options.total_replicas,
                   .elastic = options.elastic};
  for (size_t i = 0; i < binding_.variables.size(); ++i) binding_.values.push_back(source.value(i));
}

void SynchronousAlgorithm::Begin(StoreClient& client) { TrainInPlace(client, source_, binding_); }

absl::StatusOr<StepResult> SynchronousAlgorithm::Step(StoreClient& client) {
  ASSIGN_OR_RETURN(const double loss, TracedGradients(source_, client, gradient_tap()));
  // Batch-norm statistics are each worker's own. The model is saved with the chief's.
  const bool chief = client.chief_epoch() != 0;
  ASSIGN_OR_RETURN(const StoreClient::StepResult pushed,
                   client.PushPull([this](size_t variable) { return source_.gradient(variable); },
                                   {.publish_buffers = chief, .local_step = client.round()}));
  if (pushed.dropped) ++dropped_;
  return StepResult{loss, pushed.global_step, pushed.staleness};
}

}  // namespace muster
