// An algorithm's name and parameters, as a program or its command line gives them, and the plan that follows from them
// in a given cluster. The one switch over all algorithms. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/algo/algorithms/commit_spec.h"
#include "muster/optim/optimizer_spec.h"

namespace muster {

struct AlgorithmChoice {
  std::string name = "hogwild";
  // Text by the parameter names of algorithm_table.h: {"window", "5"}, {"server_rule", "adam:learning_rate=0.001"}.
  std::map<std::string, std::string> parameters;
  bool deterministic = false;

  // Takes --algorithm, --deterministic and every algorithm's parameters (`--window=5`, `--window 5`) out of argc and
  // argv, leaving the program's own arguments. Flags that aren't given keep their value in `standard`, whose parameters
  // apply to its own algorithm only. For main: a mistake is written to stderr as one line and the process exits with 2.
  // Doesn't check that the parameters fit the algorithm: PlanAlgorithm does.
  static AlgorithmChoice FromCommandLine(int& argc, char** argv, AlgorithmChoice standard);
  // Does the same, but returns the error (InvalidArgument). `arguments` don't include the program's name.
  static absl::StatusOr<AlgorithmChoice> FromArguments(std::vector<std::string>& arguments, AlgorithmChoice standard);
};

// Returns the lines on these flags for a program's --help.
std::string AlgorithmFlagsHelp();

// Returns every flag that FromCommandLine takes, once, without the dashes. A program uses them to suggest a flag for a
// mistyped one (base/text/nearest_name.h).
std::vector<std::string> AlgorithmFlagNames();

// The cluster that the algorithm is to train in.
struct AlgorithmCluster {
  uint32_t workers = 1;  // including the chief
  uint32_t worker = 0;   // this worker's number, from 0
  // 0: a cluster without ps. One process alone is its own ps and counts as one.
  int num_ps = 1;
};

enum class AlgorithmWay : uint8_t {
  kPipeline,   // as `commit` says
  kPipelined,  // one step stale (pipelined.h)
  kAllReduce,  // without ps (all_reduce.h)
};

struct AlgorithmPlan {
  std::string name;  // as in the table, not an alias
  AlgorithmWay way = AlgorithmWay::kPipeline;
  CommitSpec commit;
  OptimizerSpec server_rule;          // applied by the ps, or with all-reduce by every worker
  std::vector<std::string> warnings;  // for the log, one line each
};

// Describes the plan in one line, for the log: "downpour: window 5, worker_rule adagrad:learning_rate=0.01, server_rule
// …".
std::string DescribePlan(const AlgorithmPlan& plan);

// InvalidArgument, naming the parameter, its value and what is accepted: an unknown algorithm or parameter (with the
// nearest known name), a value out of range, rules that contradict each other, more replicas than there are workers, an
// algorithm that needs a ps in a cluster without one or the reverse.
absl::StatusOr<AlgorithmPlan> PlanAlgorithm(const AlgorithmChoice& choice, const AlgorithmCluster& cluster);

}  // namespace muster
