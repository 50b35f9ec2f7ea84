#include "muster/algo/choice/algorithm_choice.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/algo/choice/algorithm_settings.h"
#include "muster/algo/choice/algorithm_table.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/optim/rule_text.h"

namespace muster {
namespace {

// What a worker commits, and which server rules fit it.
enum class Commits : uint8_t {
  kGradients,        // any rule but add
  kEither,           // differences with add, gradients with any other rule
  kDifferences,      // add
  kPseudoGradients,  // any rule but add
  kExchange,         // add
  kSharedExchange,   // add
};

// The properties of an algorithm that aren't parameters.
struct AlgorithmShape {
  absl::string_view name;
  Commits commits = Commits::kGradients;
  bool mean = false;
  bool gate = false;
  StalenessScale staleness_scale = StalenessScale::kNone;
  AlgorithmWay way = AlgorithmWay::kPipeline;
};

constexpr AlgorithmShape kShapes[] = {
    {.name = "hogwild"},
    {.name = "downpour", .commits = Commits::kEither},
    {.name = "downpour_easy", .commits = Commits::kEither},
    {.name = "agn", .commits = Commits::kEither, .mean = true},
    {.name = "adag", .commits = Commits::kDifferences, .mean = true},
    {.name = "dynsgd", .commits = Commits::kEither, .staleness_scale = StalenessScale::kInverseAfterThis},
    {.name = "staleness_aware", .staleness_scale = StalenessScale::kInverse},
    {.name = "ssp"},
    {.name = "synchronous", .gate = true},
    {.name = "synchronous_different_rates", .gate = true},
    {.name = "sagn", .mean = true, .gate = true},
    {.name = "easgd", .commits = Commits::kSharedExchange, .gate = true},
    {.name = "aeasgd", .commits = Commits::kExchange},
    {.name = "aeamsgd", .commits = Commits::kExchange},
    {.name = "diloco", .commits = Commits::kPseudoGradients, .gate = true},
    {.name = "pipelined", .way = AlgorithmWay::kPipelined},
    {.name = "all_reduce", .way = AlgorithmWay::kAllReduce},
};

// What PlanAlgorithm works from.
struct Planning {
  const AlgorithmInfo& info;
  const AlgorithmShape& shape;
  const AlgorithmSettings& settings;
  const AlgorithmCluster& cluster;
  const bool deterministic;
};

absl::Status CheckCluster(const AlgorithmInfo& info, const AlgorithmCluster& cluster) {
  if (cluster.workers == 0)
    return AlgorithmMistake(info, "this cluster has 0 workers; accepted: at least 1, the chief among them");
  if (cluster.worker >= cluster.workers)
    return AlgorithmMistake(info, absl::StrCat("worker number ", cluster.worker, " of ", cluster.workers,
                                               "; accepted: 0 to ", cluster.workers - 1));
  if (info.needs_ps && cluster.num_ps == 0)
    return AlgorithmMistake(
        info,
        "needs a ps, and this cluster has none; accepted: a cluster with a ps (a 'ps' job in TF_CONFIG, "
        "--ps_hosts, muster run --ps 1, srun -n 3 … --ps 1), or the algorithm all_reduce, which needs none");
  // One worker with one ps may be a process that is its own ps: such a process may be a whole all-reduce group.
  if (!info.needs_ps && cluster.num_ps > 0 && (cluster.num_ps > 1 || cluster.workers > 1))
    return AlgorithmMistake(
        info,
        absl::StrCat("this cluster has ", cluster.num_ps,
                     " ps, which would have nothing to do: the workers average their gradients themselves, and each "
                     "keeps the model; accepted: a cluster without ps (muster run --ps 0), or the algorithm "
                     "synchronous, where the ps hold the model"));
  return absl::OkStatus();
}

// Returns the commit that follows from the server's rule, after checking that both rules fit it.
absl::StatusOr<CommitKind> ChooseKind(const Planning& p) {
  const bool adds = p.settings.server_rule->kind == RuleKind::kAdd;
  const std::string text = RuleText(*p.settings.server_rule);
  if (p.settings.worker_rule && p.settings.worker_rule->kind == RuleKind::kAdd)
    return AlgorithmMistake(p.info,
                            "worker_rule is add, which would climb: it adds gradients; accepted: a rule that descends, "
                            "such as sgd");
  switch (p.shape.commits) {
    case Commits::kEither:
      return adds ? CommitKind::kDelta : CommitKind::kGradient;
    case Commits::kGradients:
    case Commits::kPseudoGradients:
      if (adds)
        return AlgorithmMistake(p.info,
                                "server_rule is add, which would climb: commits are gradients; accepted: a rule "
                                "that descends, such as sgd");
      return p.shape.commits == Commits::kGradients ? CommitKind::kGradient : CommitKind::kPseudoGradient;
    case Commits::kDifferences:
    case Commits::kExchange:
    case Commits::kSharedExchange:
      break;
  }
  if (!adds)
    return AlgorithmMistake(
        p.info, absl::StrCat("server_rule is ", text, ", but commits are differences, not gradients; accepted: add"));
  if (p.shape.commits == Commits::kDifferences) return CommitKind::kDelta;
  return p.shape.commits == Commits::kExchange ? CommitKind::kExchange : CommitKind::kSharedExchange;
}

// Returns α from the parameter that determines it.
absl::StatusOr<double> ChooseAlpha(const Planning& p) {
  const AlgorithmSettings& settings = p.settings;
  const double workers = p.cluster.workers;
  if (settings.beta) {
    if (*settings.beta > workers)
      return AlgorithmMistake(p.info,
                              absl::StrCat("beta is ", *settings.beta, "; accepted: above 0 and at most ", workers,
                                           ", the number of workers, because alpha = beta / workers is at most 1"));
    return *settings.beta / workers;
  }
  if (settings.alpha && settings.rho)
    return AlgorithmMistake(p.info, absl::StrCat("both alpha, ", *settings.alpha, ", and rho, ", *settings.rho,
                                                 "; accepted: one of the two (alpha = rho × learning rate)"));
  if (settings.alpha) return *settings.alpha;
  if (!settings.rho) return 0.9 / workers;
  const double rate = settings.worker_rule->learning_rate;
  const double alpha = *settings.rho * rate;
  if (!(alpha > 0 && alpha <= 1))
    return AlgorithmMistake(p.info, absl::StrCat("rho is ", *settings.rho, ", with the worker's learning rate ", rate,
                                                 " an alpha = rho × learning_rate of ", alpha,
                                                 "; accepted: an alpha above 0 and at most 1"));
  return alpha;
}

absl::Status PlanExchange(const Planning& p, AlgorithmPlan& plan) {
  if (p.shape.commits != Commits::kExchange && p.shape.commits != Commits::kSharedExchange) return absl::OkStatus();
  ASSIGN_OR_RETURN(plan.commit.alpha, ChooseAlpha(p));
  const double together = plan.commit.alpha * p.cluster.workers;
  if (together >= 1)
    plan.warnings.push_back(absl::StrCat(
        "algorithm ", p.info.name, ": alpha ", plan.commit.alpha, " × ", p.cluster.workers, " workers = ", together,
        ", not below 1: all workers together move the centre the whole way to where they are, or beyond, and it may "
        "swing; the stability bound (arXiv 1412.6651) is 0 ≤ alpha ≤ 1 and workers × alpha = beta ≤ 1: take ",
        p.settings.beta ? "beta below 1" : absl::StrCat("alpha below ", 1.0 / p.cluster.workers)));
  if (!p.settings.momentum) return absl::OkStatus();
  const RuleSpec& rule = *p.settings.worker_rule;
  if (rule.kind != RuleKind::kSgd || rule.weight_decay != 0)
    return AlgorithmMistake(p.info,
                            absl::StrCat("worker_rule is ", RuleText(rule),
                                         "; accepted: sgd without weight decay: the momentum is the algorithm's "
                                         "own, with a look-ahead that other rules don't know"));
  plan.commit.momentum = *p.settings.momentum;
  return absl::OkStatus();
}

absl::Status PlanGate(const Planning& p, AlgorithmPlan& plan) {
  if (!p.shape.gate) return absl::OkStatus();
  const uint32_t workers = p.cluster.workers;
  const uint32_t replicas = p.settings.replicas_to_aggregate.value_or(workers);
  if (replicas == 0 || replicas > workers)
    return AlgorithmMistake(
        p.info, absl::StrCat("replicas_to_aggregate is ", replicas, "; accepted: a whole number from 1 to ", workers,
                             ", as many as there are workers: more gradients than that can never come"));
  if (p.deterministic && replicas < workers)
    return AlgorithmMistake(p.info, absl::StrCat("replicas_to_aggregate is ", replicas, " of ", workers,
                                                 " workers with --deterministic: which one is late would be chance; "
                                                 "accepted: ",
                                                 workers));
  // In a fixed order of workers, a worker that is missing is waited for.
  plan.commit.gate = {.kind = GateKind::kSynchronous,
                      .replicas_to_aggregate = replicas,
                      .total_replicas = workers,
                      .elastic = !p.deterministic};
  return absl::OkStatus();
}

absl::Status PlanRates(const Planning& p, AlgorithmPlan& plan) {
  constexpr double kStandardRate = 0.01;
  if (FindParameter(p.info, "rates") == nullptr) return absl::OkStatus();
  plan.commit.scale = kStandardRate;
  if (!p.settings.rates) return absl::OkStatus();
  if (p.settings.rates->size() != p.cluster.workers)
    return AlgorithmMistake(p.info, absl::StrCat("rates are ", p.settings.rates->size(),
                                                 " numbers; accepted: ", p.cluster.workers, ", one for each worker"));
  plan.commit.scale = (*p.settings.rates)[p.cluster.worker];
  return absl::OkStatus();
}

absl::Status PlanWindows(const Planning& p, AlgorithmPlan& plan) {
  plan.commit.window = p.settings.window.value_or(1);
  // A fetch with each commit uses the commit's round trip.
  if (!p.settings.fetch_window || *p.settings.fetch_window == plan.commit.window) return absl::OkStatus();
  plan.commit.fetch_window = *p.settings.fetch_window;
  if (p.deterministic)
    return AlgorithmMistake(
        p.info, absl::StrCat("fetch_window is ", plan.commit.fetch_window, " with a window of ", plan.commit.window,
                             " and --deterministic: only commits are admitted in "
                             "the workers' order, so what a fetch brings would be chance; accepted: ",
                             plan.commit.window));
  return absl::OkStatus();
}

absl::Status PlanPipeline(const Planning& p, AlgorithmPlan& plan) {
  CommitSpec& commit = plan.commit;
  ASSIGN_OR_RETURN(commit.kind, ChooseKind(p));
  RETURN_IF_ERROR(PlanWindows(p, plan));
  if (p.settings.worker_rule) commit.worker_rule = *p.settings.worker_rule;
  commit.mean = p.shape.mean;
  commit.staleness_scale = p.shape.staleness_scale;
  commit.compensation = p.settings.compensation.value_or(0);
  if (FindParameter(p.info, "gamma") != nullptr)
    commit.adaptive = p.settings.gamma.value_or(p.settings.worker_rule->learning_rate);
  commit.staleness_bound = p.settings.bound;
  if (p.deterministic && commit.staleness_bound == 0u)
    return AlgorithmMistake(p.info,
                            "bound is 0 with --deterministic: every worker would wait for those whose turn comes "
                            "later; accepted: 1 and more, or the algorithm synchronous");
  RETURN_IF_ERROR(PlanRates(p, plan));
  RETURN_IF_ERROR(PlanExchange(p, plan));
  return PlanGate(p, plan);
}

}  // namespace

absl::StatusOr<AlgorithmPlan> PlanAlgorithm(const AlgorithmChoice& choice, const AlgorithmCluster& cluster) {
  const AlgorithmInfo* info = FindAlgorithm(choice.name);
  if (info == nullptr) return UnknownAlgorithm(choice.name);
  const auto* shape = std::find_if(std::begin(kShapes), std::end(kShapes),
                                   [info](const AlgorithmShape& one) { return one.name == info->name; });
  MUSTER_CHECK(shape != std::end(kShapes));
  ASSIGN_OR_RETURN(const AlgorithmSettings settings, ReadAlgorithmSettings(*info, choice.parameters));
  RETURN_IF_ERROR(CheckCluster(*info, cluster));
  if (choice.deterministic && shape->way == AlgorithmWay::kPipelined)
    return AlgorithmMistake(
        *info,
        "can't be --deterministic: two updates of a worker are under way at once, and what is pulled "
        "beside them is chance; accepted: another algorithm, such as hogwild");
  AlgorithmPlan plan;
  plan.name = std::string(info->name);
  plan.way = shape->way;
  plan.server_rule = *settings.server_rule;
  plan.commit.deterministic = choice.deterministic;
  RETURN_IF_ERROR(PlanPipeline({*info, *shape, settings, cluster, choice.deterministic}, plan));
  return plan;
}

std::string DescribePlan(const AlgorithmPlan& plan) {
  const CommitSpec& commit = plan.commit;
  std::vector<std::string> parts;
  if (commit.window > 1) parts.push_back(absl::StrCat("window ", commit.window));
  if (commit.fetch_window > 0) parts.push_back(absl::StrCat("fetch_window ", commit.fetch_window));
  if (commit.worker_rule) parts.push_back(absl::StrCat("worker_rule ", RuleTextWithRate(commit.worker_rule->rule)));
  parts.push_back(absl::StrCat("server_rule ", RuleTextWithRate(plan.server_rule.rule)));
  if (commit.gate.kind == GateKind::kSynchronous)
    parts.push_back(
        absl::StrCat(commit.gate.replicas_to_aggregate, " of ", commit.gate.total_replicas, " workers make an update"));
  if (commit.staleness_bound) parts.push_back(absl::StrCat("bound ", *commit.staleness_bound));
  if (commit.scale != 1) parts.push_back(absl::StrCat("this worker's rate ", commit.scale));
  if (commit.alpha > 0) parts.push_back(absl::StrCat("alpha ", commit.alpha));
  if (commit.momentum > 0) parts.push_back(absl::StrCat("momentum ", commit.momentum));
  if (commit.adaptive > 0) parts.push_back(absl::StrCat("gamma ", commit.adaptive));
  if (commit.compensation > 0) parts.push_back(absl::StrCat("compensation ", commit.compensation));
  if (commit.deterministic) parts.push_back("deterministic");
  return absl::StrCat(plan.name, ": ", absl::StrJoin(parts, ", "));
}

}  // namespace muster
