// An algorithm's parameters as values: those given, else the table's defaults, each checked for its range. How they
// depend on each other and on the cluster is decided in algorithm_choice.cc. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/algo/choice/algorithm_table.h"
#include "muster/optim/rule_spec.h"

namespace muster {

// nullopt: the algorithm has no such parameter, or it wasn't given and its default depends on others or on the cluster.
struct AlgorithmSettings {
  std::optional<uint32_t> window;
  std::optional<uint32_t> fetch_window;
  std::optional<uint32_t> replicas_to_aggregate;  // not checked: may be 0 or too many
  std::optional<uint32_t> bound;
  std::optional<double> learning_rate;  // already part of the rules
  std::optional<double> compensation;
  std::optional<double> gamma;
  std::optional<double> beta;
  std::optional<double> alpha;
  std::optional<double> rho;
  std::optional<double> momentum;
  std::optional<std::vector<double>> rates;
  std::optional<RuleSpec> server_rule;  // every algorithm has one
  std::optional<RuleSpec> worker_rule;
};

// Returns InvalidArgument "algorithm NAME: what", the form of every message about an algorithm's parameters.
absl::Status AlgorithmMistake(const AlgorithmInfo& info, const std::string& what);

// InvalidArgument, naming the parameter, its text and what is accepted: a parameter that the algorithm lacks (with the
// nearest one that it has, or the algorithms that have it), a value out of range, a learning rate given twice.
absl::StatusOr<AlgorithmSettings> ReadAlgorithmSettings(const AlgorithmInfo& info,
                                                        const std::map<std::string, std::string>& parameters);

// Returns the rule that the shorthand learning_rate sets: "worker_rule" if the algorithm has one, else "server_rule".
std::string RuleOfLearningRate(const AlgorithmInfo& info);

// Returns null if the algorithm has no parameter of that name.
const ParameterInfo* FindParameter(const AlgorithmInfo& info, absl::string_view name);

}  // namespace muster
