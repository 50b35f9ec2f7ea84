#include "muster/launch/engines/slurm/allocation.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/base/text/one_line.h"
#include "muster/cluster/slurm/node_list.h"

namespace muster {
namespace {

constexpr char kJobVariable[] = "SLURM_JOB_ID";
constexpr char kNodesVariable[] = "SLURM_JOB_NODELIST";
constexpr char kCpusVariable[] = "SLURM_JOB_CPUS_PER_NODE";
constexpr char kPartsVariable[] = "SLURM_HET_SIZE";
constexpr char kEndVariable[] = "SLURM_JOB_END_TIME";
constexpr size_t kMostCpusShown = 8;

absl::Status BadVariable(std::string_view name, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(AbslView(name), ": ", OneLine(why)));
}

}  // namespace

absl::StatusOr<SlurmAllocation> AllocationIn(const std::vector<std::string>& environment) {
  SlurmAllocation allocation{.job = VariableIn(environment, kJobVariable), .nodes = {}, .ends_at = {}};
  if (allocation.job.empty())
    return absl::NotFoundError(
        "this isn't within an allocation of Slurm; get one with salloc -N 2 and repeat this in its shell, or write "
        "this into a script for sbatch");
  if (!std::all_of(allocation.job.begin(), allocation.job.end(), absl::ascii_isdigit))
    return BadVariable(kJobVariable, absl::StrCat("'", allocation.job, "' isn't the number of a job"));
  if (const std::string parts = VariableIn(environment, kPartsVariable); !parts.empty() && parts != "1")
    return BadVariable(kPartsVariable, absl::StrCat("the job has ", parts, " parts, of which only one would be used; ",
                                                    "accepted: a job of one part"));
  const std::string list = VariableIn(environment, kNodesVariable);
  if (list.empty())
    return BadVariable(kNodesVariable, absl::StrCat("isn't set, though this is a process of job ", allocation.job,
                                                    "; srun --overlap --jobid=", allocation.job,
                                                    " --pty bash gives a shell that has it"));
  const auto names = ExpandNodeList(list);
  if (!names.ok()) return BadVariable(kNodesVariable, std::string(names.status().message()));
  for (const std::string& name : *names) allocation.nodes.push_back({.name = name});
  if (const std::string cpus = VariableIn(environment, kCpusVariable); !cpus.empty()) {
    const auto counts = ExpandCounts(cpus);
    if (!counts.ok()) return BadVariable(kCpusVariable, std::string(counts.status().message()));
    if (counts->size() != names->size())
      return BadVariable(kCpusVariable, absl::StrCat("tells of ", counts->size(), " nodes, and ", kNodesVariable,
                                                     " of ", names->size()));
    for (size_t i = 0; i < counts->size(); ++i) allocation.nodes[i].cpus = (*counts)[i];
  }
  int64_t seconds = 0;
  if (absl::SimpleAtoi(VariableIn(environment, kEndVariable), &seconds) && seconds > 0)
    allocation.ends_at = absl::FromUnixSeconds(seconds);
  return allocation;
}

std::string DescribeAllocation(const SlurmAllocation& allocation, absl::TimeZone zone) {
  std::vector<int> cpus;
  for (const AllocatedNode& node : allocation.nodes) cpus.push_back(node.cpus);
  const size_t nodes = cpus.size();
  std::string text = absl::StrCat("job ", allocation.job, " of Slurm: ", nodes, nodes == 1 ? " node" : " nodes");
  const bool known = std::find(cpus.begin(), cpus.end(), 0) == cpus.end();
  const bool same = std::all_of(cpus.begin(), cpus.end(), [&](int one) { return one == cpus.front(); });
  if (known && same)
    absl::StrAppend(&text, nodes == 1 ? " with " : " with each ", cpus.front(), cpus.front() == 1 ? " CPU" : " CPUs");
  if (known && !same) {
    cpus.resize(std::min(nodes, kMostCpusShown));
    absl::StrAppend(&text, " with ", absl::StrJoin(cpus, ", "), cpus.size() < nodes ? ", …" : "", " CPUs");
  }
  if (allocation.ends_at.has_value())
    absl::StrAppend(&text, ", until ", absl::FormatTime("%Y-%m-%d %H:%M", *allocation.ends_at, zone));
  return text;
}

}  // namespace muster
