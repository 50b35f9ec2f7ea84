// Every algorithm with a ps, by name and parameters, next to the settings with which a simulation from its paper
// (reference_algorithms.h) does the same. The tests of the algorithms' mathematics run these cases. Test-only.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "muster/algo/choice/algorithm_choice.h"
#include "muster/algo/testing/reference_algorithms.h"
#include "muster/base/dtype.h"

namespace muster {

struct MathematicsCase {
  std::string name;  // name of the test
  AlgorithmChoice choice;
  ReferenceKind kind = ReferenceKind::kGradients;
  ReferenceSettings reference;
  // How near any element must be to the optimum after 600 minibatches of each worker, if all workers have the same
  // optimum and gradients have no noise.
  double near = 1e-6;
  DType dtype = DType::kFloat64;
};
inline void PrintTo(const MathematicsCase& one, std::ostream* out) { *out << one.name; }

namespace mathematics {

inline constexpr RuleSpec kAdd = {.kind = RuleKind::kAdd};
inline constexpr RuleSpec kSgd = {.kind = RuleKind::kSgd, .learning_rate = 0.1};
inline constexpr RuleSpec kMomentum = {.kind = RuleKind::kMomentum, .learning_rate = 0.1, .momentum = 0.5};
inline constexpr RuleSpec kNesterov = {
    .kind = RuleKind::kMomentum, .learning_rate = 0.7, .momentum = 0.5, .nesterov = true};
inline constexpr RuleSpec kAdagrad = {.kind = RuleKind::kAdagrad, .learning_rate = 0.2, .epsilon = 1e-10};
inline constexpr RuleSpec kAdam = {
    .kind = RuleKind::kAdam, .learning_rate = 0.05, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
inline constexpr RuleSpec kAdamW = {.kind = RuleKind::kAdamW,
                                    .learning_rate = 0.02,
                                    .beta1 = 0.9,
                                    .beta2 = 0.999,
                                    .epsilon = 1e-8,
                                    .weight_decay = 0.01};

// The same rules as text.
inline constexpr char kSgdText[] = "sgd:learning_rate=0.1";
inline constexpr char kMomentumText[] = "momentum:learning_rate=0.1,momentum=0.5";
inline constexpr char kNesterovText[] = "momentum:learning_rate=0.7,momentum=0.5,nesterov=1";
inline constexpr char kAdagradText[] = "adagrad:learning_rate=0.2";
inline constexpr char kAdamText[] = "adam:learning_rate=0.05";
inline constexpr char kAdamWText[] = "adamw:learning_rate=0.02,weight_decay=0.01";

inline double AfterThis(int64_t staleness) { return 1 / (static_cast<double>(staleness) + 1); }
inline double Inverse(int64_t staleness) { return staleness > 0 ? 1 / static_cast<double>(staleness) : 1; }

// Commits of each minibatch's or window's gradient, at the values as they were pulled.
inline std::vector<MathematicsCase> GradientCases() {
  return {
      {.name = "hogwild",
       .choice = {.name = "hogwild", .parameters = {{"server_rule", kSgdText}}},
       .reference = {.server_rule = kSgd}},
      {.name = "hogwild_float32",
       .choice = {.name = "hogwild", .parameters = {{"server_rule", kSgdText}}},
       .reference = {.server_rule = kSgd},
       .near = 1e-5,
       .dtype = DType::kFloat32},
      {.name = "hogwild_momentum",
       .choice = {.name = "hogwild", .parameters = {{"server_rule", kMomentumText}}},
       .reference = {.server_rule = kMomentum}},
      {.name = "hogwild_window",
       .choice = {.name = "hogwild", .parameters = {{"window", "3"}, {"server_rule", kSgdText}}},
       .reference = {.window = 3, .server_rule = kSgd}},
      {.name = "hogwild_compensated",
       .choice = {.name = "hogwild", .parameters = {{"compensation", "0.5"}, {"server_rule", kSgdText}}},
       .reference = {.server_rule = kSgd, .compensation = 0.5}},
      {.name = "staleness_aware",
       .choice = {.name = "staleness_aware", .parameters = {{"server_rule", kSgdText}}},
       .reference = {.server_rule = kSgd, .factor = Inverse}},
      {.name = "staleness_aware_momentum",
       .choice = {.name = "staleness_aware", .parameters = {{"server_rule", kMomentumText}}},
       .reference = {.server_rule = kMomentum, .factor = Inverse}},
      {.name = "staleness_aware_compensated",
       .choice = {.name = "staleness_aware", .parameters = {{"compensation", "0.5"}, {"server_rule", kSgdText}}},
       .reference = {.server_rule = kSgd, .factor = Inverse, .compensation = 0.5}},
      {.name = "ssp",
       .choice = {.name = "ssp", .parameters = {{"bound", "2"}, {"server_rule", kSgdText}}},
       .reference = {.bound = 2, .server_rule = kSgd}},
      {.name = "ssp_in_step",
       .choice = {.name = "ssp", .parameters = {{"bound", "0"}, {"server_rule", kMomentumText}}},
       .reference = {.bound = 0, .server_rule = kMomentum}},
      {.name = "ssp_window",
       .choice = {.name = "ssp", .parameters = {{"bound", "1"}, {"window", "2"}, {"server_rule", kSgdText}}},
       .reference = {.window = 2, .bound = 1, .server_rule = kSgd}},
      {.name = "ssp_compensated",
       .choice = {.name = "ssp", .parameters = {{"bound", "2"}, {"compensation", "0.5"}, {"server_rule", kSgdText}}},
       .reference = {.bound = 2, .server_rule = kSgd, .compensation = 0.5}},
  };
}

// Workers that move their own values between two commits.
inline MathematicsCase Downpour(const std::string& name, int window, int fetch_window, bool adds) {
  AlgorithmChoice choice = {.name = "downpour",
                            .parameters = {{"window", std::to_string(window)},
                                           {"worker_rule", kAdagradText},
                                           {"server_rule", adds ? "add" : kAdagradText}}};
  if (fetch_window > 0) choice.parameters["fetch_window"] = std::to_string(fetch_window);
  return {.name = name,
          .choice = std::move(choice),
          .kind = adds ? ReferenceKind::kDifferences : ReferenceKind::kGradients,
          .reference = {.window = window,
                        .fetch_window = fetch_window,
                        .worker_rule = kAdagrad,
                        .server_rule = adds ? kAdd : kAdagrad}};
}

inline std::vector<MathematicsCase> LocalCases() {
  return {
      Downpour("downpour", 4, 0, false),
      Downpour("downpour_add", 4, 0, true),
      Downpour("downpour_fetches_seldom", 2, 5, false),
      Downpour("downpour_fetches_often", 5, 2, false),
      Downpour("downpour_add_fetches_seldom", 2, 5, true),
      Downpour("downpour_add_fetches_often", 5, 2, true),
      {.name = "downpour_easy",
       .choice = {.name = "downpour_easy", .parameters = {{"window", "4"}, {"worker_rule", kSgdText}}},
       .kind = ReferenceKind::kDifferences,
       .reference = {.window = 4, .worker_rule = kSgd, .server_rule = kAdd}},
      {.name = "downpour_easy_float32",
       .choice = {.name = "downpour_easy", .parameters = {{"window", "2"}, {"worker_rule", kSgdText}}},
       .kind = ReferenceKind::kDifferences,
       .reference = {.window = 2, .worker_rule = kSgd, .server_rule = kAdd},
       .near = 1e-5,
       .dtype = DType::kFloat32},
      {.name = "downpour_easy_gradients",
       .choice = {.name = "downpour_easy",
                  .parameters = {{"window", "4"}, {"worker_rule", kSgdText}, {"server_rule", kSgdText}}},
       .reference = {.window = 4, .worker_rule = kSgd, .server_rule = kSgd}},
      {.name = "agn",
       .choice = {.name = "agn", .parameters = {{"window", "4"}, {"worker_rule", kMomentumText}}},
       .kind = ReferenceKind::kDifferences,
       .reference = {.window = 4, .mean = true, .worker_rule = kMomentum, .server_rule = kAdd}},
      {.name = "adag",
       .choice = {.name = "adag", .parameters = {{"window", "4"}, {"gamma", "0.01"}, {"worker_rule", kSgdText}}},
       .kind = ReferenceKind::kDifferences,
       .reference = {.window = 4, .mean = true, .worker_rule = kSgd, .server_rule = kAdd, .gamma = 0.01}},
      {.name = "dynsgd",
       .choice = {.name = "dynsgd", .parameters = {{"window", "3"}, {"worker_rule", kSgdText}}},
       .kind = ReferenceKind::kDifferences,
       .reference = {.window = 3, .worker_rule = kSgd, .server_rule = kAdd, .factor = AfterThis}},
      {.name = "dynsgd_gradients",
       .choice = {.name = "dynsgd",
                  .parameters = {{"window", "3"}, {"worker_rule", kSgdText}, {"server_rule", kSgdText}}},
       .reference = {.window = 3, .worker_rule = kSgd, .server_rule = kSgd, .factor = AfterThis}},
  };
}

inline std::vector<MathematicsCase> RoundCases() {
  return {
      {.name = "synchronous",
       .choice = {.name = "synchronous", .parameters = {{"server_rule", kMomentumText}}},
       .reference = {.replicas = 3, .server_rule = kMomentum}},
      {.name = "synchronous_with_backups",
       .choice = {.name = "synchronous", .parameters = {{"replicas_to_aggregate", "2"}, {"server_rule", kSgdText}}},
       .reference = {.replicas = 2, .server_rule = kSgd}},
      {.name = "synchronous_different_rates",
       .choice = {.name = "synchronous_different_rates",
                  .parameters = {{"rates", "0.1,0.2,0.3"}, {"server_rule", "sgd:learning_rate=1"}}},
       .reference = {.replicas = 3,
                     .server_rule = {.kind = RuleKind::kSgd, .learning_rate = 1},
                     .rates = {0.1, 0.2, 0.3}}},
      {.name = "sagn",
       .choice = {.name = "sagn",
                  .parameters = {{"window", "3"}, {"worker_rule", kSgdText}, {"server_rule", kAdamText}}},
       .reference = {.window = 3, .replicas = 3, .mean = true, .worker_rule = kSgd, .server_rule = kAdam},
       .near = 1e-3},
      {.name = "diloco",
       .choice = {.name = "diloco",
                  .parameters = {{"window", "4"}, {"worker_rule", kAdamWText}, {"server_rule", kNesterovText}}},
       .kind = ReferenceKind::kPseudoGradients,
       .reference = {.window = 4, .replicas = 3, .worker_rule = kAdamW, .server_rule = kNesterov},
       .near = 0.01},
  };
}

inline std::vector<MathematicsCase> ElasticCases() {
  const auto easgd = [](const std::string& name, int window) -> MathematicsCase {
    return {.name = name,
            .choice = {.name = "easgd",
                       .parameters = {{"beta", "0.6"}, {"window", std::to_string(window)}, {"worker_rule", kSgdText}}},
            .kind = ReferenceKind::kElasticRounds,
            .reference = {.window = window, .replicas = 3, .worker_rule = kSgd, .server_rule = kAdd, .alpha = 0.2}};
  };
  return {
      easgd("easgd", 1),
      easgd("easgd_window", 3),
      {.name = "aeasgd",
       .choice = {.name = "aeasgd", .parameters = {{"window", "3"}, {"alpha", "0.2"}, {"worker_rule", kSgdText}}},
       .kind = ReferenceKind::kElastic,
       .reference = {.window = 3, .worker_rule = kSgd, .server_rule = kAdd, .alpha = 0.2}},
      {.name = "aeasgd_adagrad",
       .choice = {.name = "aeasgd", .parameters = {{"window", "1"}, {"alpha", "0.3"}, {"worker_rule", kAdagradText}}},
       .kind = ReferenceKind::kElastic,
       .reference = {.worker_rule = kAdagrad, .server_rule = kAdd, .alpha = 0.3}},
      {.name = "aeamsgd",
       .choice = {.name = "aeamsgd",
                  .parameters = {{"window", "3"}, {"alpha", "0.2"}, {"momentum", "0.5"}, {"worker_rule", kSgdText}}},
       .kind = ReferenceKind::kElastic,
       .reference = {.window = 3, .worker_rule = kSgd, .server_rule = kAdd, .alpha = 0.2, .momentum = 0.5}},
  };
}

}  // namespace mathematics

inline std::vector<MathematicsCase> MathematicsCases() {
  std::vector<MathematicsCase> cases;
  for (const auto& some : {mathematics::GradientCases(), mathematics::LocalCases(), mathematics::RoundCases(),
                           mathematics::ElasticCases()})
    cases.insert(cases.end(), some.begin(), some.end());
  return cases;
}

}  // namespace muster
