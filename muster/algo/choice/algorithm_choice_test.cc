// Each algorithm's plan, and which choices are refused. A refusal alone isn't enough: the message must name the
// parameter, its value and what is accepted.
#include "muster/algo/choice/algorithm_choice.h"

#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/algo/choice/algorithm_table.h"
#include "muster/optim/rule_options.h"
#include "muster/optim/rule_text.h"

namespace muster::algorithm_choice_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

using Parameters = std::map<std::string, std::string>;

constexpr AlgorithmCluster kFour = {.workers = 4, .worker = 2, .num_ps = 2};

AlgorithmCluster ClusterFor(const AlgorithmInfo& info) {
  AlgorithmCluster cluster = kFour;
  if (!info.needs_ps) cluster.num_ps = 0;
  return cluster;
}

AlgorithmPlan Plan(const std::string& name, const Parameters& parameters = {}, AlgorithmCluster cluster = kFour) {
  return PlanAlgorithm({name, parameters, false}, cluster).value();
}

std::string Mistake(const AlgorithmChoice& choice, AlgorithmCluster cluster = kFour) {
  const auto plan = PlanAlgorithm(choice, cluster);
  EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << choice.name << ": " << plan.status();
  const std::string message(plan.status().message());
  EXPECT_THAT(message, AllOf(HasSubstr("algorithm"), HasSubstr("accepted: "), Not(HasSubstr("\n"))));
  return message;
}

std::string Mistake(const std::string& name, const Parameters& parameters, AlgorithmCluster cluster = kFour) {
  return Mistake(AlgorithmChoice{name, parameters, false}, cluster);
}

// Writes a whole plan as text, to compare plans.
std::string Text(const AlgorithmPlan& plan) {
  const CommitSpec& c = plan.commit;
  return absl::StrCat(plan.name, " way ", static_cast<int>(plan.way), " kind ", static_cast<int>(c.kind), " window ",
                      c.window, "/", c.fetch_window, " worker ", c.worker_rule ? RuleText(c.worker_rule->rule) : "none",
                      " mean ", c.mean, " scale ", c.scale, " stale ", static_cast<int>(c.staleness_scale),
                      " compensation ", c.compensation, " adaptive ", c.adaptive, " alpha ", c.alpha, " momentum ",
                      c.momentum, " gate ", c.gate.replicas_to_aggregate, "/", c.gate.total_replicas, " bound ",
                      c.staleness_bound ? absl::StrCat(*c.staleness_bound) : "none", " order ", c.deterministic,
                      " server ", RuleText(plan.server_rule.rule), " warnings ", absl::StrJoin(plan.warnings, "|"));
}

TEST(AlgorithmChoice, WhatThereIsIsTheDefaultThatTheTableSays) {
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    const std::string name(info.name);
    const std::string standard = Text(Plan(name, {}, ClusterFor(info)));
    for (const ParameterInfo& parameter : info.parameters) {
      if (absl::StartsWith(parameter.standard, "(")) continue;
      const Parameters said = {{std::string(parameter.name), std::string(parameter.standard)}};
      EXPECT_EQ(Text(Plan(name, said, ClusterFor(info))), standard) << name << " " << parameter.name;
    }
  }
}

// A parameter that changes nothing in the plan would be a parameter that no code reads.
TEST(AlgorithmChoice, EveryParameterChangesThePlan) {
  const Parameters other = {{"window", "7"},   {"fetch_window", "9"},  {"replicas_to_aggregate", "3"},
                            {"bound", "8"},    {"learning_rate", "3"}, {"compensation", "0.25"},
                            {"gamma", "0.25"}, {"beta", "0.25"},       {"alpha", "0.125"},
                            {"rho", "0.25"},   {"momentum", "0.25"},   {"rates", "1,2,3,4"}};
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    const std::string name(info.name);
    for (const ParameterInfo& parameter : info.parameters) {
      if (parameter.kind == ParameterKind::kRule) continue;
      const auto value = other.find(std::string(parameter.name));
      ASSERT_NE(value, other.end()) << parameter.name;
      EXPECT_NE(Text(Plan(name, {*value}, ClusterFor(info))), Text(Plan(name, {}, ClusterFor(info))))
          << name << " " << parameter.name;
    }
  }
}

TEST(AlgorithmChoice, Hogwild) {
  const AlgorithmPlan plan = Plan("async", {{"compensation", "0.04"}});
  EXPECT_EQ(plan.name, "hogwild");
  EXPECT_EQ(plan.way, AlgorithmWay::kPipeline);
  EXPECT_EQ(plan.commit.kind, CommitKind::kGradient);
  EXPECT_EQ(plan.commit.window, 1);
  EXPECT_FALSE(plan.commit.worker_rule);
  EXPECT_FALSE(plan.commit.mean);
  EXPECT_EQ(plan.commit.scale, 1);
  EXPECT_EQ(plan.commit.compensation, 0.04);
  EXPECT_EQ(plan.commit.gate.kind, GateKind::kNone);
  EXPECT_FALSE(plan.commit.staleness_bound);
  EXPECT_EQ(plan.server_rule, OptimizerSpec(Sgd()));
}

TEST(AlgorithmChoice, DownpourCommitsGradientsToARuleThatDescendsAndDifferencesToAdd) {
  const AlgorithmPlan plan = Plan("downpour");
  EXPECT_EQ(plan.commit.kind, CommitKind::kGradient);
  EXPECT_EQ(plan.commit.window, 5);
  EXPECT_EQ(plan.commit.fetch_window, 0);
  EXPECT_EQ(plan.commit.worker_rule, OptimizerSpec(Adagrad()));
  EXPECT_EQ(plan.server_rule, OptimizerSpec(Adagrad()));
  EXPECT_FALSE(plan.commit.mean);
  EXPECT_EQ(Plan("downpour", {{"server_rule", "add"}}).commit.kind, CommitKind::kDelta);
  // A period that is neither a multiple nor a divisor is allowed. One equal to the window means: with each commit.
  EXPECT_EQ(Plan("downpour", {{"fetch_window", "3"}}).commit.fetch_window, 3);
  EXPECT_EQ(Plan("downpour", {{"fetch_window", "7"}, {"window", "7"}}).commit.fetch_window, 0);
}

TEST(AlgorithmChoice, LocalStepsAreAddedOrDividedOrScaled) {
  const AlgorithmPlan easy = Plan("downpour_easy");
  EXPECT_EQ(easy.commit.kind, CommitKind::kDelta);
  EXPECT_EQ(easy.commit.window, 5);
  EXPECT_EQ(easy.commit.worker_rule, OptimizerSpec(Sgd()));
  EXPECT_EQ(easy.server_rule, OptimizerSpec(PlainAdd()));
  EXPECT_FALSE(easy.commit.mean);
  EXPECT_EQ(Plan("downpour_easy", {{"server_rule", "sgd"}}).commit.kind, CommitKind::kGradient);

  const AlgorithmPlan agn = Plan("agn");
  EXPECT_EQ(agn.commit.kind, CommitKind::kDelta);
  EXPECT_EQ(agn.commit.window, 12);
  EXPECT_TRUE(agn.commit.mean);
  const AlgorithmPlan descending = Plan("agn", {{"server_rule", "adam"}});
  EXPECT_EQ(descending.commit.kind, CommitKind::kGradient);
  EXPECT_TRUE(descending.commit.mean);

  const AlgorithmPlan dynsgd = Plan("dynsgd");
  EXPECT_EQ(dynsgd.commit.kind, CommitKind::kDelta);
  EXPECT_EQ(dynsgd.commit.staleness_scale, StalenessScale::kInverseAfterThis);
  EXPECT_EQ(Plan("staleness-aware").commit.staleness_scale, StalenessScale::kInverse);
  EXPECT_EQ(Plan("staleness-aware").commit.kind, CommitKind::kGradient);
}

TEST(AlgorithmChoice, AdagTakesTheWorkersLearningRateForGamma) {
  const AlgorithmPlan plan = Plan("adag", {{"learning_rate", "0.25"}});
  EXPECT_EQ(plan.commit.kind, CommitKind::kDelta);
  EXPECT_TRUE(plan.commit.mean);
  EXPECT_EQ(plan.commit.adaptive, 0.25);
  EXPECT_EQ(Plan("adag", {{"learning_rate", "0.25"}, {"gamma", "2"}}).commit.adaptive, 2);
  EXPECT_EQ(Plan("agn").commit.adaptive, 0);
}

TEST(AlgorithmChoice, SspHasABound) {
  EXPECT_EQ(Plan("ssp").commit.staleness_bound, 4u);
  EXPECT_EQ(Plan("ssp", {{"bound", "0"}}).commit.staleness_bound, 0u);
  EXPECT_THAT(Mistake("ssp", {{"bound", "-1"}}), HasSubstr("bound is \"-1\"; accepted: a whole number from 0"));
}

TEST(AlgorithmChoice, SynchronousWaitsForAllOrForSome) {
  const AlgorithmPlan plan = Plan("sync");
  EXPECT_EQ(plan.commit.gate, (GateSpec{GateKind::kSynchronous, 4, 4, true}));
  EXPECT_EQ(plan.commit.kind, CommitKind::kGradient);
  EXPECT_EQ(plan.server_rule, OptimizerSpec(Sgd()));
  EXPECT_EQ(Plan("sync", {{"replicas_to_aggregate", "3"}}).commit.gate, (GateSpec{GateKind::kSynchronous, 3, 4, true}));
}

TEST(AlgorithmChoice, EachWorkerHasItsOwnRate) {
  const Parameters rates = {{"rates", "0.5, 0.25,0.125,1"}};
  for (uint32_t worker = 0; worker < 4; ++worker) {
    const double wanted[] = {0.5, 0.25, 0.125, 1};
    const AlgorithmPlan plan =
        Plan("synchronous_different_rates", rates, {.workers = 4, .worker = worker, .num_ps = 1});
    EXPECT_EQ(plan.commit.scale, wanted[worker]);
    EXPECT_EQ(plan.commit.gate, (GateSpec{GateKind::kSynchronous, 4, 4, true}));
  }
  EXPECT_EQ(Plan("synchronous_different_rates").commit.scale, 0.01);
  EXPECT_EQ(Plan("synchronous_different_rates").server_rule, OptimizerSpec(Sgd({.learning_rate = 1})));
  const auto rule = [](const std::string& text) {
    return Plan("synchronous_different_rates", {{"server_rule", text}}).server_rule.rule;
  };
  EXPECT_EQ(rule("momentum"), Momentum({.learning_rate = 1}));
  EXPECT_EQ(rule("momentum:learning_rate=0.5"), Momentum({.learning_rate = 0.5}));
  EXPECT_EQ(rule("adam"), Adam());
}

TEST(AlgorithmChoice, SagnAndDilocoAreSynchronousWithLocalSteps) {
  const AlgorithmPlan sagn = Plan("sagn", {{"replicas_to_aggregate", "2"}});
  EXPECT_EQ(sagn.commit.kind, CommitKind::kGradient);
  EXPECT_EQ(sagn.commit.window, 5);
  EXPECT_TRUE(sagn.commit.mean);
  EXPECT_EQ(sagn.commit.worker_rule, OptimizerSpec(Adam()));
  EXPECT_EQ(sagn.server_rule, OptimizerSpec(Adam()));
  EXPECT_EQ(sagn.commit.gate, (GateSpec{GateKind::kSynchronous, 2, 4, true}));

  const AlgorithmPlan diloco = Plan("diloco");
  EXPECT_EQ(diloco.commit.kind, CommitKind::kPseudoGradient);
  EXPECT_EQ(diloco.commit.window, 500);
  EXPECT_FALSE(diloco.commit.mean);
  EXPECT_EQ(diloco.commit.worker_rule, OptimizerSpec(AdamW()));
  EXPECT_EQ(diloco.server_rule, OptimizerSpec(Momentum({.learning_rate = 0.7, .momentum = 0.9, .nesterov = true})));
  EXPECT_EQ(diloco.commit.gate, (GateSpec{GateKind::kSynchronous, 4, 4, true}));
}

TEST(AlgorithmChoice, ElasticAveragingHasAnAlpha) {
  const AlgorithmPlan easgd = Plan("easgd");
  EXPECT_EQ(easgd.commit.kind, CommitKind::kSharedExchange);
  EXPECT_EQ(easgd.commit.window, 1);
  EXPECT_DOUBLE_EQ(easgd.commit.alpha, 0.9 / 4);
  EXPECT_EQ(easgd.commit.gate, (GateSpec{GateKind::kSynchronous, 4, 4, true}));
  EXPECT_DOUBLE_EQ(Plan("easgd", {{"beta", "0.5"}}).commit.alpha, 0.125);

  const AlgorithmPlan aeasgd = Plan("aeasgd");
  EXPECT_EQ(aeasgd.commit.kind, CommitKind::kExchange);
  EXPECT_EQ(aeasgd.commit.window, 32);
  EXPECT_DOUBLE_EQ(aeasgd.commit.alpha, 0.9 / 4);
  EXPECT_EQ(aeasgd.commit.momentum, 0);
  EXPECT_EQ(aeasgd.commit.gate.kind, GateKind::kNone);
  EXPECT_EQ(aeasgd.server_rule, OptimizerSpec(PlainAdd()));
  EXPECT_DOUBLE_EQ(Plan("aeasgd", {{"alpha", "0.125"}}).commit.alpha, 0.125);
  EXPECT_DOUBLE_EQ(Plan("aeasgd", {{"rho", "2"}, {"learning_rate", "0.1"}}).commit.alpha, 0.2);
  EXPECT_DOUBLE_EQ(Plan("aeasgd", {{"rho", "2"}, {"worker_rule", "adam:learning_rate=0.05"}}).commit.alpha, 0.1);
  EXPECT_THAT(aeasgd.warnings, IsEmpty());

  const AlgorithmPlan eamsgd = Plan("eamsgd");
  EXPECT_EQ(eamsgd.name, "aeamsgd");
  EXPECT_EQ(eamsgd.commit.momentum, 0.9);
  EXPECT_EQ(eamsgd.commit.worker_rule, OptimizerSpec(Sgd()));
  EXPECT_EQ(Plan("eamsgd", {{"momentum", "0.5"}}).commit.momentum, 0.5);
}

TEST(AlgorithmChoice, WarnsWhereTheElasticForceOfAllMayOvershoot) {
  for (const char* name : {"aeasgd", "aeamsgd"}) {
    EXPECT_THAT(Plan(name, {{"alpha", "0.249"}}).warnings, IsEmpty());
    EXPECT_THAT(Plan(name, {{"alpha", "0.25"}}).warnings,
                ElementsAre(AllOf(HasSubstr("alpha 0.25 × 4 workers = 1, not below 1"),
                                  HasSubstr("workers × alpha = beta ≤ 1: take alpha below 0.25"))));
    EXPECT_THAT(Plan(name, {{"rho", "5"}, {"learning_rate", "0.1"}}).warnings,
                ElementsAre(HasSubstr("alpha 0.5 × 4 workers = 2")));
  }
  EXPECT_THAT(Plan("easgd", {{"beta", "2"}}).warnings,
              ElementsAre(AllOf(HasSubstr("alpha 0.5 × 4 workers = 2"), HasSubstr("take beta below 1"))));
}

TEST(AlgorithmChoice, PipelinedAndAllReduceStandBesideThePipeline) {
  const AlgorithmPlan pipelined = Plan("pipelined", {{"server_rule", "adam"}});
  EXPECT_EQ(pipelined.way, AlgorithmWay::kPipelined);
  EXPECT_EQ(pipelined.server_rule, OptimizerSpec(Adam()));
  const AlgorithmPlan all_reduce = Plan("all_reduce", {{"learning_rate", "0.5"}}, {.workers = 2, .num_ps = 0});
  EXPECT_EQ(all_reduce.way, AlgorithmWay::kAllReduce);
  EXPECT_EQ(all_reduce.server_rule, OptimizerSpec(Sgd({.learning_rate = 0.5})));
}

TEST(AlgorithmChoice, TheLearningRateIsTheWorkersOrElseTheServers) {
  EXPECT_EQ(Plan("hogwild", {{"learning_rate", "0.5"}}).server_rule, OptimizerSpec(Sgd({.learning_rate = 0.5})));
  EXPECT_EQ(Plan("hogwild", {{"learning_rate", "0.5"}, {"server_rule", "adam:beta1=0.5"}}).server_rule,
            OptimizerSpec(Adam({.learning_rate = 0.5, .beta1 = 0.5})));
  const AlgorithmPlan downpour = Plan("downpour", {{"learning_rate", "0.5"}, {"server_rule", "sgd:learning_rate=2"}});
  EXPECT_EQ(downpour.commit.worker_rule, OptimizerSpec(Adagrad({.learning_rate = 0.5})));
  EXPECT_EQ(downpour.server_rule, OptimizerSpec(Sgd({.learning_rate = 2})));
  EXPECT_EQ(Plan("synchronous_different_rates", {{"learning_rate", "0.5"}}).server_rule,
            OptimizerSpec(Sgd({.learning_rate = 0.5})));
  EXPECT_THAT(Mistake("downpour", {{"learning_rate", "0.5"}, {"worker_rule", "sgd:learning_rate=0.5"}}),
              AllOf(HasSubstr("learning_rate is 0.5"), HasSubstr("worker_rule \"sgd:learning_rate=0.5\""),
                    HasSubstr("one of the two")));
  EXPECT_THAT(Mistake("hogwild", {{"learning_rate", "0.5"}, {"server_rule", "sgd:learning_rate=0.5"}}),
              HasSubstr("server_rule"));
}

TEST(AlgorithmChoice, AnUnknownAlgorithmIsNamedWithTheNearest) {
  EXPECT_THAT(Mistake("downpuor", {}),
              HasSubstr("unknown algorithm \"downpuor\" (nearest: downpour); accepted: hogwild"));
}

TEST(AlgorithmChoice, AnUnknownParameterIsNamedWithTheNearestOrWhoHasIt) {
  EXPECT_THAT(Mistake("downpour", {{"windw", "5"}}),
              AllOf(HasSubstr("algorithm downpour: no parameter \"windw\" (nearest: window); accepted: window, "),
                    HasSubstr("learning_rate")));
  EXPECT_THAT(Mistake("hogwild", {{"alpha", "0.5"}}), HasSubstr("no parameter \"alpha\" (aeasgd, aeamsgd have it)"));
  EXPECT_THAT(Mistake("hogwild", {{"beta", "0.5"}}), HasSubstr("no parameter \"beta\" (easgd has it)"));
  EXPECT_THAT(Mistake("hogwild", {{"worker_rule", "sgd"}}), HasSubstr("(downpour, downpour_easy, "));
  EXPECT_THAT(Mistake("sagn", {{"fetch_window", "3"}}), HasSubstr("no parameter \"fetch_window\" (downpour has it)"));
  EXPECT_THAT(Mistake("downpour", {{"compensation", "1"}}),
              AllOf(HasSubstr("(hogwild, staleness_aware, ssp have it)"), HasSubstr("with a worker's rule")));
  EXPECT_THAT(Mistake("hogwild", {{"zzz", "1"}}), HasSubstr("no parameter \"zzz\"; accepted: window"));
}

TEST(AlgorithmChoice, ValuesOutOfRangeAreNamedWithTheRange) {
  const std::string window = "; accepted: a whole number from 1 to 1000000";
  for (const char* bad : {"0", "-5", "2.5", "five", "", "1000001", "99999999999999999999"})
    EXPECT_THAT(Mistake("downpour", {{"window", bad}}), HasSubstr(absl::StrCat(": window is \"", bad, "\"", window)));
  EXPECT_THAT(Mistake("downpour", {{"fetch_window", "0"}}), HasSubstr(absl::StrCat("fetch_window is \"0\"", window)));
  for (const char* bad : {"-0.1", "nan", "inf", "fast"}) {
    EXPECT_THAT(Mistake("hogwild", {{"learning_rate", bad}}),
                HasSubstr(absl::StrCat("learning_rate is \"", bad, "\"; accepted: a finite number, at least 0")));
    EXPECT_THAT(Mistake("hogwild", {{"compensation", bad}}), HasSubstr(absl::StrCat("compensation is \"", bad, "\"")));
    EXPECT_THAT(Mistake("adag", {{"gamma", bad}}), HasSubstr(absl::StrCat("gamma is \"", bad, "\"")));
    EXPECT_THAT(Mistake("synchronous_different_rates", {{"rates", absl::StrCat("1,1,1,", bad)}}),
                HasSubstr(absl::StrCat("rates is \"1,1,1,", bad, "\"; accepted: finite numbers, at least 0")));
  }
  EXPECT_THAT(Mistake("adag", {{"gamma", "0"}}), HasSubstr("above 0"));
  for (const char* bad : {"0", "1.001", "-0.5", "nan"})
    EXPECT_THAT(Mistake("aeasgd", {{"alpha", bad}}),
                HasSubstr(absl::StrCat("alpha is \"", bad, "\"; accepted: above 0 and at most 1")));
  EXPECT_THAT(Mistake("easgd", {{"beta", "0"}}), HasSubstr("beta is \"0\""));
  EXPECT_THAT(Mistake("easgd", {{"beta", "5"}}), HasSubstr("beta is 5; accepted: above 0 and at most 4"));
  EXPECT_THAT(Mistake("aeasgd", {{"rho", "0"}}), HasSubstr("rho is \"0\""));
  EXPECT_THAT(Mistake("aeasgd", {{"rho", "20"}, {"learning_rate", "0.1"}}),
              AllOf(HasSubstr("rho is 20"), HasSubstr("of 2; accepted: an alpha above 0 and at most 1")));
  EXPECT_THAT(Mistake("aeasgd", {{"rho", "1"}, {"learning_rate", "0"}}), HasSubstr("learning rate 0"));
  EXPECT_THAT(Mistake("aeasgd", {{"rho", "1"}, {"alpha", "0.5"}}), HasSubstr("both alpha, 0.5, and rho, 1"));
  for (const char* bad : {"1", "-0.1"})
    EXPECT_THAT(Mistake("eamsgd", {{"momentum", bad}}), HasSubstr("accepted: at least 0 and below 1"));
  EXPECT_THAT(Mistake("hogwild", {{"server_rule", "adma"}}), HasSubstr("server_rule: unknown update rule \"adma\""));
  EXPECT_THAT(Mistake("agn", {{"worker_rule", "sgd:learning_rate=-1"}}), HasSubstr("worker_rule: rule sgd"));
}

TEST(AlgorithmChoice, MoreReplicasThanCanEverComeAreRefused) {
  for (const char* name : {"synchronous", "sagn", "diloco"}) {
    for (const char* bad : {"0", "5"}) {
      EXPECT_THAT(Mistake(name, {{"replicas_to_aggregate", bad}}),
                  HasSubstr(absl::StrCat("replicas_to_aggregate is ", bad, "; accepted: a whole number from 1 to 4")));
    }
  }
}

TEST(AlgorithmChoice, RatesAreOneAWorker) {
  EXPECT_THAT(Mistake("synchronous_different_rates", {{"rates", "1,2,3"}}),
              HasSubstr("rates are 3 numbers; accepted: 4, one for each worker"));
  EXPECT_THAT(Mistake("synchronous_different_rates", {{"rates", "1,2,3,"}}), HasSubstr("\"\" is none"));
}

TEST(AlgorithmChoice, RulesThatDontGoTogetherAreRefused) {
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    const std::string name(info.name);
    for (const ParameterInfo& parameter : info.parameters) {
      if (parameter.name != "worker_rule") continue;
      EXPECT_THAT(Mistake(name, {{"worker_rule", "add"}}), HasSubstr("worker_rule is add, which would climb"));
    }
  }
  for (const char* name : {"hogwild", "staleness_aware", "ssp", "synchronous", "synchronous_different_rates", "sagn",
                           "diloco", "pipelined"}) {
    EXPECT_THAT(Mistake(name, {{"server_rule", "add"}}), HasSubstr("server_rule is add, which would climb"));
  }
  EXPECT_THAT(Mistake("all_reduce", {{"server_rule", "add"}}, {.workers = 2, .num_ps = 0}), HasSubstr("would climb"));
  for (const char* name : {"adag", "easgd", "aeasgd", "aeamsgd"}) {
    EXPECT_THAT(Mistake(name, {{"server_rule", "sgd:learning_rate=0.5"}}),
                AllOf(HasSubstr("server_rule is sgd:learning_rate=0.5"), HasSubstr("accepted: add")));
  }
  for (const char* bad : {"adam", "momentum", "sgd:weight_decay=0.1"}) {
    EXPECT_THAT(Mistake("eamsgd", {{"worker_rule", bad}}), AllOf(HasSubstr(absl::StrCat("worker_rule is ", bad)),
                                                                 HasSubstr("accepted: sgd without weight decay")));
  }
}

TEST(AlgorithmChoice, AnAlgorithmThatNeedsAPsSaysSo) {
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    if (!info.needs_ps) continue;
    EXPECT_THAT(Mistake(std::string(info.name), {}, {.workers = 2, .num_ps = 0}),
                AllOf(HasSubstr("needs a ps, and this cluster has none"), HasSubstr("all_reduce, which needs none")));
  }
}

TEST(AlgorithmChoice, AllReduceWithAPsSaysWhatItWouldDo) {
  EXPECT_THAT(Mistake("allreduce", {}),
              AllOf(HasSubstr("algorithm all_reduce: this cluster has 2 ps, which would have nothing to do"),
                    HasSubstr("synchronous, where the ps hold the model")));
  EXPECT_EQ(Plan("all_reduce", {}, {.workers = 1, .num_ps = 1}).way, AlgorithmWay::kAllReduce);  // a process alone
}

TEST(AlgorithmChoice, OneProcessAloneCanTakeAny) {
  for (const AlgorithmInfo& info : AlgorithmTable())
    EXPECT_THAT(Plan(std::string(info.name), {}, AlgorithmCluster()).warnings, IsEmpty()) << info.name;
}

TEST(AlgorithmChoice, AWorkerThatThereIsntIsRefused) {
  EXPECT_THAT(Mistake("hogwild", {}, {.workers = 0}), HasSubstr("0 workers"));
  EXPECT_THAT(Mistake("hogwild", {}, {.workers = 2, .worker = 2}), HasSubstr("worker number 2 of 2"));
}

TEST(AlgorithmChoice, DeterministicWhereChanceCanBeLeftOut) {
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    if (info.name == "pipelined") continue;
    const auto plan = PlanAlgorithm({std::string(info.name), {}, true}, ClusterFor(info)).value();
    EXPECT_TRUE(plan.commit.deterministic) << info.name;
  }
  EXPECT_FALSE(Plan("hogwild").commit.deterministic);
  EXPECT_THAT(Mistake({"pipelined", {}, true}), HasSubstr("two updates of a worker are under way at once"));
  EXPECT_THAT(Mistake({"sync", {{"replicas_to_aggregate", "3"}}, true}),
              AllOf(HasSubstr("replicas_to_aggregate is 3 of 4"), HasSubstr("accepted: 4")));
  EXPECT_THAT(Mistake({"downpour", {{"fetch_window", "10"}}, true}),
              AllOf(HasSubstr("fetch_window is 10 with a window of 5"), HasSubstr("accepted: 5")));
  EXPECT_TRUE(PlanAlgorithm({"downpour", {{"fetch_window", "5"}}, true}, kFour).ok());
}

// In a fixed order of workers, all workers are waited for.
TEST(PlanAlgorithmTest, DeterministicGatesAreNotElastic) {
  EXPECT_TRUE(Plan("synchronous").commit.gate.elastic);
  const auto plan = PlanAlgorithm({"synchronous", {}, true}, kFour).value();
  EXPECT_FALSE(plan.commit.gate.elastic);
  EXPECT_THAT(Mistake({"ssp", {{"bound", "0"}}, true}), HasSubstr("bound is 0 with --deterministic"));
}

TEST(DescribePlanTest, SaysInOneLineWhatIsTrained) {
  EXPECT_EQ(DescribePlan(Plan("downpour", {{"fetch_window", "10"}})),
            absl::StrCat("downpour: window 5, fetch_window 10, worker_rule ", RuleTextWithRate(Adagrad()),
                         ", server_rule ", RuleTextWithRate(Adagrad())));
  EXPECT_EQ(DescribePlan(Plan("synchronous", {{"replicas_to_aggregate", "3"}})),
            absl::StrCat("synchronous: server_rule ", RuleTextWithRate(Sgd()), ", 3 of 4 workers make an update"));
  EXPECT_THAT(DescribePlan(Plan("aeamsgd", {{"alpha", "0.2"}})), HasSubstr("alpha 0.2, momentum 0.9"));
}

}  // namespace
}  // namespace muster::algorithm_choice_test
