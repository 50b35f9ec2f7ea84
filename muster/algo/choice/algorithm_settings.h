// An algorithm's parameters as values: what was said, else the table's defaults, each in its range. What they mean for
// each other and in a cluster is for algorithm_choice.cc. Pure; thread-safe.
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

// Nothing: the algorithm has no such parameter, or nobody said and the default depends on others or on the cluster.
struct AlgorithmSettings {
  std::optional<uint32_t> window;
  std::optional<uint32_t> fetch_window;
  std::optional<uint32_t> replicas_to_aggregate;  // may be 0, and too many
  std::optional<uint32_t> bound;
  std::optional<double> learning_rate;  // is in the rules already
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

// "algorithm NAME: what": how every mistake with its parameters is told. InvalidArgument.
absl::Status AlgorithmMistake(const AlgorithmInfo& info, const std::string& what);

// InvalidArgument naming the parameter, its text and what is accepted: one that the algorithm lacks (with the nearest
// that it has, or the algorithms that have it), one out of its range, a learning rate that is said twice.
absl::StatusOr<AlgorithmSettings> ReadAlgorithmSettings(const AlgorithmInfo& info,
                                                        const std::map<std::string, std::string>& parameters);

// The rule that the shorthand learning_rate is of: "worker_rule" if the algorithm has one, else "server_rule".
std::string RuleOfLearningRate(const AlgorithmInfo& info);

// Null: the algorithm has no parameter of that name.
const ParameterInfo* FindParameter(const AlgorithmInfo& info, absl::string_view name);

}  // namespace muster
