// An algorithm by name with its parameters, as a program or its command line says it, and what that means in a cluster:
// the one switch behind which all of them are. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/algo/methods/commit_spec.h"
#include "muster/optim/optimizer_spec.h"

namespace muster {

struct AlgorithmChoice {
  std::string name = "hogwild";
  // By the names of algorithm_table.h, as text: {"window", "5"}, {"server_rule", "adam:learning_rate=0.001"}.
  std::map<std::string, std::string> parameters;
  bool deterministic = false;

  // Takes --algorithm, --deterministic and every algorithm's parameters (`--window=5`, `--window 5`) out of argc and
  // argv, leaving the program's own; what isn't given is as in `standard`, whose parameters hold for its own algorithm
  // only. For main: a mistake is written to stderr as one line and the process exits with 2. Whether the parameters fit
  // the algorithm is for PlanAlgorithm to say.
  static AlgorithmChoice FromCommandLine(int& argc, char** argv, AlgorithmChoice standard);
  // The same for who wants the error (InvalidArgument); `arguments` are without the program's name.
  static absl::StatusOr<AlgorithmChoice> FromArguments(std::vector<std::string>& arguments, AlgorithmChoice standard);
};

// What a program's --help says about these flags.
std::string AlgorithmFlagsHelp();

// All that FromCommandLine takes, each once, without the dashes: for a program's message about a flag that nobody knows
// (base/nearest_name.h), which may be one of these with a typing mistake.
std::vector<std::string> AlgorithmFlagNames();

// Where it is to train.
struct AlgorithmCluster {
  uint32_t workers = 1;  // the chief among them
  uint32_t worker = 0;   // which one this is, from 0
  // 0: a cluster without ps. One process alone counts as one ps, which it is itself.
  int num_ps = 1;
};

enum class AlgorithmWay : uint8_t {
  kPipeline,   // as `commit` says
  kPipelined,  // one step stale (pipelined.h)
  kAllReduce,  // without ps (all_reduce.h)
};

struct AlgorithmPlan {
  std::string name;  // of the table, not an alias
  AlgorithmWay way = AlgorithmWay::kPipeline;
  CommitSpec commit;
  OptimizerSpec server_rule;          // that the ps apply; with all-reduce every worker
  std::vector<std::string> warnings;  // for the log, each a line
};

// The plan in one line, for the log: "downpour: window 5, worker_rule adagrad:learning_rate=0.01, server_rule …".
std::string DescribePlan(const AlgorithmPlan& plan);

// InvalidArgument, naming the parameter, its value and what is accepted: an unknown algorithm or parameter (with the
// nearest one there is), a value out of its range, rules that can't go together, more replicas than can arrive, a way
// that needs a ps in a cluster without one or the reverse.
absl::StatusOr<AlgorithmPlan> PlanAlgorithm(const AlgorithmChoice& choice, const AlgorithmCluster& cluster);

}  // namespace muster
