#include "muster/torch_bridge/facade/algorithms.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/choice/algorithm_settings.h"
#include "muster/algo/choice/algorithm_table.h"
#include "muster/algo/choice/make_algorithm.h"
#include "muster/base/log.h"
#include "muster/base/wrong_configuration.h"
#include "muster/optim/rule_text.h"

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

AlgorithmPlan PlanOrThrow(Replica& replica, const AlgorithmChoice& choice) {
  absl::StatusOr<AlgorithmPlan> plan = PlanAlgorithm(choice, ClusterOf(replica.server()));
  if (!plan.ok()) throw Error(AsWrongConfiguration(plan.status()));
  return *std::move(plan);
}

Trainer TrainerOf(Replica& replica, const AlgorithmPlan& plan) {
  LogInfo("trains by ", DescribePlan(plan));
  for (const std::string& warning : plan.warnings) LogWarning(warning);
  if (plan.commit.deterministic) {
    at::set_num_threads(1);
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  }
  return Trainer(replica, MakeAlgorithm(plan, replica.source(), replica.placement(), AllReduceJoinOf(replica.server()),
                                        AllReduceOptionsOf(replica.server(), {})));
}

// The rule as text for PlanAlgorithm, as far as text can express it; without the rate if the choice gives one.
std::string RuleTextForPlan(const RuleSpec& rule, bool with_rate) {
  if (with_rate) return RuleTextWithRate(rule);
  RuleSpec usual = rule;
  usual.learning_rate = ValueOrThrow(ParseRuleText(RuleName(rule.kind))).learning_rate;
  return RuleText(usual);
}

// The ps check the rule that they apply; a worker's rule is checked only here.
void CheckWorkerRule(const AlgorithmPlan& plan, const OptimizerSpec& optimizer,
                     const std::vector<VariableSpec>& variables) {
  std::vector<std::string> names;
  for (const VariableSpec& variable : variables) names.push_back(variable.name);
  absl::Status fits = CheckOptimizer(optimizer, names);
  for (const VariableSpec& variable : variables)
    if (fits.ok() && variable.updated()) fits = CheckRuleFor(optimizer.RuleFor(variable.name), variable.dtype);
  if (fits.ok() && plan.commit.momentum != 0 && !optimizer.groups.empty())
    fits = absl::InvalidArgumentError(
        absl::StrCat("algorithm ", plan.name, ": its momentum is one for all variables, and the optimizer has ",
                     optimizer.groups.size(), " parameter groups; accepted: an optimizer without groups"));
  for (const ParameterGroup& group : optimizer.groups)
    if (fits.ok() && group.rule.kind == RuleKind::kAdd)
      fits = absl::InvalidArgumentError(
          absl::StrCat("algorithm ", plan.name,
                       ": a parameter group of the optimizer has the rule add, which would climb: it adds "
                       "gradients; accepted: a rule that descends, such as sgd"));
  if (!fits.ok()) throw Error(AsWrongConfiguration(fits));
}

}  // namespace

Trainer MakeTrainer(Replica& replica, const AlgorithmChoice& choice) {
  return TrainerOf(replica, PlanOrThrow(replica, choice));
}

Trainer MakeTrainer(Replica& replica, const AlgorithmChoice& choice, const OptimizerSpec& optimizer) {
  const AlgorithmInfo* info = FindAlgorithm(choice.name);
  const bool says_rule = choice.parameters.count("worker_rule") > 0 || choice.parameters.count("server_rule") > 0;
  if (info != nullptr && says_rule)
    LogInfo("the model's own optimizer, ", RuleTextWithRate(optimizer.rule), ", isn't used: the choice of ", info->name,
            " names its own rule");
  if (info == nullptr || says_rule) return MakeTrainer(replica, choice);  // reports what is wrong
  // RuleText can't express a rule that makes no sense.
  if (const absl::Status sound = CheckRule(optimizer.rule); !sound.ok()) throw Error(AsWrongConfiguration(sound));
  const bool says_rate = choice.parameters.count("learning_rate") > 0;
  const bool workers_step = FindParameter(*info, "worker_rule") != nullptr;
  AlgorithmChoice with_rule = choice;
  with_rule.parameters[workers_step ? "worker_rule" : "server_rule"] = RuleTextForPlan(optimizer.rule, !says_rate);
  AlgorithmPlan plan = PlanOrThrow(replica, with_rule);
  OptimizerSpec whole = optimizer;
  if (says_rate)
    whole.rule.learning_rate = (workers_step ? *plan.commit.worker_rule : plan.server_rule).rule.learning_rate;
  if (workers_step) {
    CheckWorkerRule(plan, whole, replica.source().variables());
    plan.commit.worker_rule = std::move(whole);
  } else {
    plan.server_rule = std::move(whole);
  }
  return TrainerOf(replica, plan);
}

}  // namespace muster
