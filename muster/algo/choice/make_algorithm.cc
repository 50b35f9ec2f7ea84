#include "muster/algo/choice/make_algorithm.h"

#include <utility>

#include "muster/algo/algorithms/asynchronous.h"
#include "muster/algo/algorithms/bounded_staleness.h"
#include "muster/algo/algorithms/commit_pipeline.h"
#include "muster/algo/algorithms/pipelined.h"
#include "muster/algo/algorithms/synchronous.h"

namespace muster {
namespace {

// Returns whether each minibatch's gradients are sent unchanged, with at most the gate between them and the server's
// rule.
bool CommitsPlainGradients(const CommitSpec& spec) {
  return spec.kind == CommitKind::kGradient && spec.window == 1 && spec.fetch_window <= 1 && !spec.worker_rule &&
         spec.scale == 1 && spec.staleness_scale == StalenessScale::kNone && spec.compensation == 0 &&
         !spec.deterministic;
}

}  // namespace

std::unique_ptr<Algorithm> MakeAlgorithm(const AlgorithmPlan& plan, GradientSource& source, PlacementResult placement,
                                         AllReduceAlgorithm::Join join, const AllReduceOptions& all_reduce) {
  const CommitSpec& spec = plan.commit;
  const OptimizerSpec& rule = plan.server_rule;
  if (plan.way == AlgorithmWay::kAllReduce)
    return std::make_unique<AllReduceAlgorithm>(source, std::move(placement), rule, std::move(join), all_reduce);
  if (plan.way == AlgorithmWay::kPipelined)
    return std::make_unique<PipelinedAlgorithm>(source, std::move(placement), rule);
  if (!CommitsPlainGradients(spec)) return std::make_unique<CommitPipeline>(source, std::move(placement), rule, spec);
  if (spec.gate.kind == GateKind::kSynchronous)
    return std::make_unique<SynchronousAlgorithm>(
        source, std::move(placement), rule,
        SynchronousOptions{spec.gate.replicas_to_aggregate, spec.gate.total_replicas, spec.gate.elastic});
  if (spec.staleness_bound)
    return std::make_unique<BoundedStalenessAlgorithm>(source, std::move(placement), rule, *spec.staleness_bound);
  return std::make_unique<AsynchronousAlgorithm>(source, std::move(placement), rule);
}

}  // namespace muster
