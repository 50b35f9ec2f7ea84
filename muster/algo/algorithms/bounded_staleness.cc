#include "muster/algo/algorithms/bounded_staleness.h"

#include <utility>

#include "muster/algo/sources/traced_gradients.h"
#include "muster/base/status_macros.h"

namespace muster {

BoundedStalenessAlgorithm::BoundedStalenessAlgorithm(GradientSource& source, PlacementResult placement,
                                                     const OptimizerSpec& optimizer, uint32_t bound)
    : source_(source), binding_{source.variables(), std::move(placement), optimizer, {}} {
  binding_.clock_limit = uint64_t{1} + bound;
  for (size_t i = 0; i < binding_.variables.size(); ++i) binding_.values.push_back(source.value(i));
}

absl::StatusOr<StepResult> BoundedStalenessAlgorithm::Step(StoreClient& client) {
  ASSIGN_OR_RETURN(const double loss, TracedGradients(source_, client, gradient_tap()));
  RETURN_IF_ERROR(tables_.Push());
  const bool chief = client.chief_epoch() != 0;
  ASSIGN_OR_RETURN(const StoreClient::StepResult pushed,
                   client.PushPull([this](size_t variable) { return source_.gradient(variable); },
                                   {.publish_buffers = chief, .clock = client.clock() + 1}));
  return StepResult{loss, pushed.global_step, pushed.staleness};
}

}  // namespace muster
