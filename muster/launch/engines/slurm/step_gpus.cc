#include "muster/launch/engines/slurm/step_gpus.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "muster/base/absl_view.h"
#include "muster/cluster/slurm/node_list.h"
#include "muster/launch/engines/slurm/allocation.h"
#include "muster/launch/engines/slurm/step_command.h"
#include "muster/launch/system/program_output.h"

namespace muster {
namespace {

constexpr absl::Duration kScontrolPatience = absl::Seconds(10);

// Returns how many are in "gpu:2(IDX:0-1)", or "gpu:a100:1(IDX:0),gpu:v100:1(IDX:2),shard:4".
int CountGpus(absl::string_view text) {
  std::string without_indexes;
  for (int depth = 0; const char c : text) {
    depth += c == '(' ? 1 : 0;
    if (depth == 0) without_indexes += c;
    depth -= c == ')' ? 1 : 0;
  }
  int gpus = 0;
  for (const absl::string_view resource : absl::StrSplit(without_indexes, ',')) {
    int count = 0;
    if (absl::StartsWith(resource, "gpu:") && absl::SimpleAtoi(resource.substr(resource.rfind(':') + 1), &count))
      gpus += count;
  }
  return gpus;
}

}  // namespace

std::map<std::string, int> ParseGpusOfNodes(std::string_view text, const std::string& job) {
  std::map<std::string, int> gpus;
  std::vector<std::string> nodes;
  bool is_of_job = false;
  for (const absl::string_view word : absl::StrSplit(AbslView(text), absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    absl::string_view value = word;
    if (absl::ConsumePrefix(&value, "JobId=")) is_of_job = value == job;
    if (absl::ConsumePrefix(&value, "Nodes=")) nodes = ExpandNodeList(std::string(value)).value_or(nodes);
    if (is_of_job && absl::ConsumePrefix(&value, "GRES="))
      for (const std::string& node : nodes) gpus[node] = CountGpus(value);
  }
  return gpus;
}

std::map<std::string, int> GpusOfNodes(const std::vector<std::string>& environment) {
  // SLURM_GPUS_ON_NODE is a fact of each node of a job with --gres, too, which says by itself how many each node has.
  const auto asks_for_gpus = [](const std::string& variable) {
    return absl::StartsWith(variable, "SLURM_GPUS") && !absl::StartsWith(variable, "SLURM_GPUS_ON_NODE=");
  };
  const auto allocation = AllocationIn(environment);
  if (!allocation.ok() || std::none_of(environment.begin(), environment.end(), asks_for_gpus)) return {};
  const auto output = RunToItsEnd({"scontrol", "show", "job", "--details", allocation->job},
                                  SubmitEnvironment(environment), kScontrolPatience);
  return output.ok() && output->status.ok() ? ParseGpusOfNodes(output->out, allocation->job)
                                            : std::map<std::string, int>();
}

}  // namespace muster
