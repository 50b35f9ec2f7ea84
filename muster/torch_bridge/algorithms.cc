#include "muster/torch_bridge/algorithms.h"

#include <algorithm>

#include "muster/algo/make_algorithm.h"
#include "muster/base/log.h"
#include "muster/base/wrong_configuration.h"

namespace muster {
namespace {

AlgorithmCluster ClusterOf(Server& server) {
  const TaskConfig& task = server.task();
  if (!task.distributed()) return {};
  const std::vector<TaskId> workers = task.worker_tasks();
  const auto me = std::find(workers.begin(), workers.end(), task.task());
  return {.workers = static_cast<uint32_t>(workers.size()),
          .worker = static_cast<uint32_t>(me - workers.begin()),
          .num_ps = task.num_ps()};
}

}  // namespace

Trainer MakeTrainer(Replica& replica, const AlgorithmChoice& choice) {
  const auto planned = PlanAlgorithm(choice, ClusterOf(replica.server()));
  if (!planned.ok()) throw Error(AsWrongConfiguration(planned.status()));
  const AlgorithmPlan& plan = *planned;
  LogInfo("trains by ", DescribePlan(plan));
  for (const std::string& warning : plan.warnings) LogWarning(warning);
  if (choice.deterministic) {
    at::set_num_threads(1);
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  }
  return Trainer(replica, MakeAlgorithm(plan, replica.source(), replica.placement(), AllReduceJoinOf(replica.server()),
                                        AllReduceOptionsOf(replica.server(), {})));
}

}  // namespace muster
