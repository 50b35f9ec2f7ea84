#include "muster/algo/choice/algorithm_table.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "muster/base/text/nearest_name.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

// Parameters that several algorithms have.

ParameterInfo WindowParameter(absl::string_view standard) {
  return {"window", ParameterKind::kWhole, standard, "λ: minibatches a commit; a run's last commit takes what is left"};
}

ParameterInfo ServerRuleParameter(absl::string_view standard, absl::string_view meaning) {
  return {"server_rule", ParameterKind::kRule, standard, meaning};
}

ParameterInfo WorkerRuleParameter(absl::string_view standard) {
  return {"worker_rule", ParameterKind::kRule, standard,
          "by which a worker moves its own values after each minibatch, with slots of its own"};
}

ParameterInfo WorkersRate() {
  return {"learning_rate", ParameterKind::kNumber, "(of worker_rule)",
          "short for the worker_rule's, where its text doesn't say one"};
}

ParameterInfo ServersRate() {
  return {"learning_rate", ParameterKind::kNumber, "(of server_rule)",
          "short for the server_rule's, where its text doesn't say one"};
}

ParameterInfo CompensationParameter() {
  return {"compensation", ParameterKind::kNumber, "0",
          "c of delay compensation: g ← g + c g² (θ̃ as it is − θ̃ as pulled); 0: none; its paper has 0.04 and 2"};
}

ParameterInfo ReplicasParameter() {
  return {"replicas_to_aggregate", ParameterKind::kWhole, "(as many as workers)",
          "N: gradients that make an update; the other workers are backups, and late gradients are dropped"};
}

ParameterInfo AlphaParameter() {
  return {"alpha", ParameterKind::kNumber, "(0.9 / workers)",
          "α: how far worker and centre move towards each other, above 0 and at most 1; below 1 / workers is stable"};
}

ParameterInfo RhoParameter() {
  return {"rho", ParameterKind::kNumber, "(not set)",
          "ρ, instead of alpha: α = ρ × learning rate of the worker_rule, as the paper has it"};
}

constexpr char kAnyServerRule[] = "by which the ps apply a gradient";
constexpr char kEitherServerRule[] =
    "add: commits are the worker's own changes; any other rule: the window's gradients, to which it is applied";
constexpr char kAddAlone[] = "of the ps: add, nothing else, because commits are differences";

AlgorithmInfo HogwildRow() {
  return {
      .name = "hogwild",
      .aliases = {"async", "asynchronous", "async_sgd"},
      .summary = "asynchronous: each gradient is applied when it comes, to the values as they are by then",
      .formula =
          "g = ∇f(θ), θ as pulled\n"
          "θ̃ ← server_rule(θ̃, g)      with sgd: θ̃ ← θ̃ − η g",
      .reference =
          "Recht, Ré, Wright, Niu, \"Hogwild!\", NIPS 2011 (arXiv 1106.5730); delay compensation: Zheng et al., "
          "ICML 2017 (arXiv 1609.08326, equation 10)",
      .advice =
          "First choice on one host, and wherever workers differ in speed: nobody waits. With many workers the "
          "gradients are stale: then a smaller learning rate, compensation, staleness_aware or ssp.",
      .parameters = {WindowParameter("1"), ServerRuleParameter("sgd", kAnyServerRule), ServersRate(),
                     CompensationParameter()},
  };
}

AlgorithmInfo DownpourRow() {
  return {
      .name = "downpour",
      .summary = "asynchronous with local steps and Adagrad on both sides; commits and fetches have their own periods",
      .formula =
          "each minibatch: g = ∇f(θ); s ← s + g; θ ← worker_rule(θ, g)\n"
          "each window:    θ̃ ← server_rule(θ̃, s); s ← 0      with add: θ̃ ← θ̃ + (θ − θ₀)\n"
          "each fetch_window minibatches: θ, θ₀ ← θ̃",
      .reference = "Dean et al., \"Large Scale Distributed Deep Networks\", NIPS 2012, algorithm 7.1 (n_push, n_fetch)",
      .advice =
          "Slow networks and sparse gradients: 1 / window of the traffic. Adagrad makes the steps smaller that many "
          "workers take together.",
      .parameters = {WindowParameter("5"),
                     {"fetch_window", ParameterKind::kWhole, "(as window)", "minibatches between two fetches of θ̃"},
                     WorkerRuleParameter("adagrad"),
                     ServerRuleParameter("adagrad", kEitherServerRule),
                     WorkersRate()},
  };
}

AlgorithmInfo DownpourEasyRow() {
  return {
      .name = "downpour_easy",
      .summary = "asynchronous with local SGD steps; what a worker has moved by is added to the global values",
      .formula =
          "each minibatch: g = ∇f(θ); θ ← worker_rule(θ, g)\n"
          "each window:    θ̃ ← θ̃ + (θ − θ₀); θ, θ₀ ← θ̃",
      .reference = "Dean et al., NIPS 2012, with plain SGD on the workers and none on the ps",
      .advice =
          "The simplest way to send less. n workers move the global values up to n times as far as one: with many of "
          "them take agn, or a smaller rate.",
      .parameters = {WindowParameter("5"), WorkerRuleParameter("sgd"), ServerRuleParameter("add", kEitherServerRule),
                     WorkersRate()},
  };
}

AlgorithmInfo AgnRow() {
  return {
      .name = "agn",
      .aliases = {"accumulated_gradient_normalization"},
      .summary = "asynchronous with local steps; a commit is divided by its number of minibatches",
      .formula =
          "each minibatch: g = ∇f(θ); θ ← worker_rule(θ, g)\n"
          "each window:    θ̃ ← θ̃ + (θ − θ₀) / λ; θ, θ₀ ← θ̃",
      .reference = "Hermans, Spanakis, Möckel, \"Accumulated Gradient Normalization\", ACML 2017 (arXiv 1710.02368)",
      .advice =
          "Many workers and long windows: the direction is that of a whole window, the length that of one step. (The "
          "class ADAG of dist-keras does this.)",
      .parameters = {WindowParameter("12"), WorkerRuleParameter("sgd"), ServerRuleParameter("add", kEitherServerRule),
                     WorkersRate()},
  };
}

AlgorithmInfo AdagRow() {
  return {
      .name = "adag",
      .summary = "as agn; each weight is added the less, the further it has moved since the worker's pull",
      .formula =
          "each minibatch: g = ∇f(θ); θ ← worker_rule(θ, g)\n"
          "each window:    Δ = (θ − θ₀) / λ; θ̃ ← θ̃ + Δ / ((θ̃ − θ₀)² / γ + 1), weight by weight; θ, θ₀ ← θ̃",
      .reference =
          "Hermans, \"On Scalable Deep Learning and Parallelizing Gradient Descent\", master's thesis, Maastricht "
          "2017, chapter on ADAG",
      .advice = "Many workers of different speed: what is stale counts for little just where others have been at work.",
      .parameters = {WindowParameter("5"),
                     WorkerRuleParameter("sgd"),
                     ServerRuleParameter("add", kAddAlone),
                     WorkersRate(),
                     {"gamma", ParameterKind::kNumber, "(the worker's learning rate)",
                      "γ: the smaller, the more a weight that others have moved is held back"}},
  };
}

AlgorithmInfo DynSgdRow() {
  return {
      .name = "dynsgd",
      .summary = "asynchronous with local steps; a commit is divided by its staleness plus one",
      .formula =
          "each minibatch: g = ∇f(θ); θ ← worker_rule(θ, g)\n"
          "each window:    θ̃ ← θ̃ + (θ − θ₀) / (τ + 1); θ, θ₀ ← θ̃",
      .reference = "Jiang, Cui, Zhang, Yu, \"Heterogeneity-aware Distributed Parameter Servers\", SIGMOD 2017",
      .advice =
          "Workers of different speed: a late commit counts for less. With n equal workers everything is divided by n.",
      .parameters = {WindowParameter("5"), WorkerRuleParameter("sgd"), ServerRuleParameter("add", kEitherServerRule),
                     WorkersRate()},
  };
}

AlgorithmInfo StalenessAwareRow() {
  return {
      .name = "staleness_aware",
      .aliases = {"staleness_aware_sgd"},
      .summary = "asynchronous; the learning rate is divided by a gradient's staleness",
      .formula =
          "g = ∇f(θ), θ as pulled\n"
          "θ̃ ← server_rule(θ̃, g) with the learning rate η / τ, and η for τ = 0",
      .reference = "Zhang, Gupta, Lian, Liu, \"Staleness-aware Async-SGD\", IJCAI 2016 (arXiv 1511.05950, equation 6)",
      .advice = "As hogwild, with so many workers that it needs a smaller learning rate: this finds it by itself.",
      .parameters = {WindowParameter("1"), ServerRuleParameter("sgd", kAnyServerRule), ServersRate(),
                     CompensationParameter()},
  };
}

AlgorithmInfo SspRow() {
  return {
      .name = "ssp",
      .aliases = {"bounded_staleness", "stale_synchronous_parallel"},
      .summary = "asynchronous, but nobody gets more than a bound of commits ahead of the slowest worker",
      .formula =
          "before its commit c a worker has all updates of everybody up to c − bound − 1, and its own\n"
          "θ̃ ← server_rule(θ̃, g)",
      .reference =
          "Ho et al., \"More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server\", NIPS 2013",
      .advice =
          "Workers that are slow now and then: they may fall behind a little, staleness has an end all the same. A "
          "worker that is always slow makes everybody slow: then hogwild, or synchronous with backups.",
      .parameters = {{"bound", ParameterKind::kWhole, "4",
                      "commits ahead of the slowest; 0: everybody waits for everybody"},
                     WindowParameter("1"),
                     ServerRuleParameter("sgd", kAnyServerRule),
                     ServersRate(),
                     CompensationParameter()},
  };
}

AlgorithmInfo SynchronousRow() {
  return {
      .name = "synchronous",
      .aliases = {"sync", "synchronous_sgd", "sync_sgd", "sync_replicas"},
      .summary = "the mean of one gradient of each worker makes an update; or of the first N, with backup workers",
      .formula = "θ̃ ← server_rule(θ̃, (g₁ + … + g_N) / N), the first N gradients computed at the present θ̃",
      .reference =
          "Chen, Pan, Monga, Bengio, Jozefowicz, \"Revisiting Distributed Synchronous SGD\", 2016 (arXiv "
          "1604.00981); TensorFlow's SyncReplicasOptimizer",
      .advice =
          "What one process with a batch N times as large would do: results don't depend on who is fast. Everybody "
          "waits for the slowest, unless some are backups.",
      .parameters = {ReplicasParameter(), ServerRuleParameter("sgd", kAnyServerRule), ServersRate()},
  };
}

AlgorithmInfo DifferentRatesRow() {
  return {
      .name = "synchronous_different_rates",
      .aliases = {"synchronous_sgd_different_learning_rates", "synchronous_different_learning_rates",
                  "synchronous_sgd_different_rates"},
      .summary = "as synchronous; each worker multiplies its gradient by a learning rate of its own first",
      .formula = "θ̃ ← server_rule(θ̃, (η₁ g₁ + … + η_M g_M) / M)",
      .reference = "as synchronous (arXiv 1604.00981), with rates of the workers' own",
      .advice = "Workers whose data or batches differ in size or in worth.",
      .parameters = {{"rates", ParameterKind::kRates, "(0.01 for each worker)",
                      "η: numbers separated by commas, one for each worker in order, the chief first"},
                     ServerRuleParameter(
                         "sgd:learning_rate=1",
                         "by which the ps apply the mean; sgd and momentum have the learning rate 1 here "
                         "unless told another"),
                     ServersRate()},
  };
}

AlgorithmInfo SagnRow() {
  return {
      .name = "sagn",
      .aliases = {"synchronous_accumulated_gradient_normalization"},
      .summary = "synchronous with local steps: the mean of the windows' mean gradients makes an update",
      .formula =
          "each minibatch: g = ∇f(θ); s ← s + g; θ ← worker_rule(θ, g)\n"
          "each window:    θ̃ ← server_rule(θ̃, (s₁ + … + s_N) / (N λ)); s ← 0; θ ← θ̃",
      .reference = "accumulated gradients (arXiv 1710.02368) behind the gate of synchronous (arXiv 1604.00981)",
      .advice = "Where synchronous spends its time waiting for the network: a round in window minibatches.",
      .parameters = {WindowParameter("5"), ReplicasParameter(), WorkerRuleParameter("adam"),
                     ServerRuleParameter("adam", kAnyServerRule), WorkersRate()},
  };
}

AlgorithmInfo EasgdRow() {
  return {
      .name = "easgd",
      .summary = "elastic averaging, all workers at once: each is pulled towards a centre, which is pulled towards all",
      .formula =
          "each window:    E = α (θ − θ̃), with α = β / M; λ minibatches; θ ← θ − E; θ̃ ← θ̃ + (E₁ + … + E_M)\n"
          "each minibatch: θ ← worker_rule(θ, ∇f(θ))",
      .reference =
          "Zhang, Choromanska, LeCun, \"Deep learning with Elastic Averaging SGD\", NIPS 2015 (arXiv 1412.6651, "
          "equations 2 and 3)",
      .advice = "As aeasgd, with workers of one speed, and results that don't depend on who comes first.",
      .parameters = {{"beta", ParameterKind::kNumber, "0.9",
                      "β = α × workers: how far the centre moves to the workers' mean"},
                     WindowParameter("1"),
                     WorkerRuleParameter("sgd"),
                     ServerRuleParameter("add", kAddAlone),
                     WorkersRate()},
  };
}

AlgorithmInfo AeasgdRow() {
  return {
      .name = "aeasgd",
      .summary = "elastic averaging, one worker at a time: workers explore on their own, tied to a common centre",
      .formula =
          "each window:    E = α (θ − θ̃); θ̃ ← θ̃ + E\n"
          "each minibatch: θ ← worker_rule(θ, ∇f(θ)); after a window's first one also θ ← θ − E",
      .reference = "Zhang, Choromanska, LeCun, NIPS 2015 (arXiv 1412.6651), algorithm 1",
      .advice =
          "Long windows: workers may drift apart between exchanges, and find different minima, without the centre "
          "losing its way. The centre is what is evaluated and saved.",
      .parameters = {WindowParameter("32"), AlphaParameter(), RhoParameter(), WorkerRuleParameter("sgd"),
                     ServerRuleParameter("add", kAddAlone), WorkersRate()},
  };
}

AlgorithmInfo AeamsgdRow() {
  return {
      .name = "aeamsgd",
      .aliases = {"eamsgd"},
      .summary = "aeasgd with Nesterov's momentum on the workers",
      .formula =
          "each window:    E = α (θ − θ̃); θ̃ ← θ̃ + E\n"
          "each minibatch: v ← δ v; θ ← θ + v; g = ∇f(θ); θ ← θ − η g; v ← v − η g; after a window's first one "
          "also θ ← θ − E",
      .reference = "Zhang, Choromanska, LeCun, NIPS 2015 (arXiv 1412.6651), algorithm 2",
      .advice = "As aeasgd, and faster where plain SGD is slow; near 1 the momentum wants a smaller learning rate.",
      .parameters = {WindowParameter("32"),
                     AlphaParameter(),
                     RhoParameter(),
                     {"momentum", ParameterKind::kNumber, "0.9", "δ of Nesterov's momentum, at least 0 and below 1"},
                     {"worker_rule", ParameterKind::kRule, "sgd",
                      "sgd without weight decay, nothing else: the momentum is the algorithm's"},
                     ServerRuleParameter("add", kAddAlone),
                     WorkersRate()},
  };
}

AlgorithmInfo DilocoRow() {
  return {
      .name = "diloco",
      .summary = "synchronous rounds of hundreds of local AdamW steps; the ps step by Nesterov along their mean",
      .formula =
          "each minibatch: θ ← worker_rule(θ, ∇f(θ))\n"
          "each window:    θ̃ ← server_rule(θ̃, ((θ₀ − θ)₁ + … + (θ₀ − θ)_N) / N); θ, θ₀ ← θ̃",
      .reference =
          "Douillard et al., \"DiLoCo: Distributed Low-Communication Training of Language Models\", 2023 (arXiv "
          "2311.08105), algorithm 1",
      .advice =
          "Poorly connected workers and large models: hundreds of times less traffic. Workers keep their AdamW moments "
          "from round to round.",
      .parameters = {WindowParameter("500"), ReplicasParameter(), WorkerRuleParameter("adamw"),
                     ServerRuleParameter("momentum:learning_rate=0.7,momentum=0.9,nesterov=1",
                                         "by which the ps apply the mean of θ₀ − θ, as if it were a gradient"),
                     WorkersRate()},
  };
}

AlgorithmInfo PipelinedRow() {
  return {
      .name = "pipelined",
      .summary = "asynchronous, one step stale on purpose: sends and fetches while the next minibatch is computed",
      .formula = "θ̃ ← server_rule(θ̃, g), g computed at values that lack this worker's update before",
      .reference = "Zinkevich, Langford, Smola, \"Slow Learners are Fast\", NIPS 2009 (a delay of one)",
      .advice =
          "Where sending takes as long as computing and a core is free for it. Stable for half the learning rates at "
          "most.",
      .parameters = {ServerRuleParameter("sgd", kAnyServerRule), ServersRate()},
  };
}

AlgorithmInfo AllReduceRow() {
  return {
      .name = "all_reduce",
      .aliases = {"allreduce", "ddp"},
      .summary = "without ps: the workers average their gradients among themselves, each applies the mean",
      .formula = "θ ← server_rule(θ, (g₁ + … + g_M) / M), the same on each worker",
      .reference = "Li et al., \"PyTorch Distributed\", VLDB 2020 (arXiv 2006.15704)",
      .advice =
          "As synchronous, where there is no ps and the workers are equals. The death of one costs all of them the "
          "steps since the last checkpoint.",
      .parameters = {ServerRuleParameter("sgd", "by which every worker applies the mean to its own copy"),
                     ServersRate()},
      .needs_ps = false,
  };
}

std::string PlainAlgorithmName(absl::string_view name) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"-", "_"}});
}

}  // namespace

std::span<const AlgorithmInfo> AlgorithmTable() {
  static const std::vector<AlgorithmInfo> table = {
      HogwildRow(), DownpourRow(),    DownpourEasyRow(),   AgnRow(),  AdagRow(),  DynSgdRow(), StalenessAwareRow(),
      SspRow(),     SynchronousRow(), DifferentRatesRow(), SagnRow(), EasgdRow(), AeasgdRow(), AeamsgdRow(),
      DilocoRow(),  PipelinedRow(),   AllReduceRow(),
  };
  return table;
}

const AlgorithmInfo* FindAlgorithm(absl::string_view name) {
  const std::string plain = PlainAlgorithmName(name);
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    if (info.name == plain) return &info;
    for (const absl::string_view alias : info.aliases)
      if (alias == plain) return &info;
  }
  return nullptr;
}

std::string NearestAlgorithm(absl::string_view name) {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    names.emplace_back(info.name);
    for (const absl::string_view alias : info.aliases) names.emplace_back(alias);
  }
  return NearestName(PlainAlgorithmName(name), names);
}

absl::Status UnknownAlgorithm(absl::string_view name) {
  const std::string nearest = NearestAlgorithm(name);
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown algorithm ", Quoted(std::string(name)), nearest.empty() ? "" : absl::StrCat(" (nearest: ", nearest, ")"),
      "; accepted: ", absl::StrJoin(AlgorithmTable(), ", ", [](std::string* out, const AlgorithmInfo& info) {
        out->append(info.name.data(), info.name.size());
      })));
}

}  // namespace muster
