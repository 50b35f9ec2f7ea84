#include "muster/cluster/identity/compute_threads.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/cluster/address.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

// Returns "" for an address of unknown form.
std::string HostOf(const std::string& address) {
  const auto parsed = ParseHostPort(address);
  if (!parsed.ok()) return "";
  const bool own = parsed->host == "localhost" || parsed->host == "::1" || absl::StartsWith(parsed->host, "127.");
  return own ? "localhost" : parsed->host;
}

// Returns the number from 1 that a variable of other programs gives; nullopt: none. OpenMP's may be a list, one number
// for each level of nesting.
std::optional<int> NumberIn(const std::optional<std::string>& variable) {
  const std::vector<std::string> numbers = absl::StrSplit(variable.value_or(""), ',');
  int number = 0;
  if (!absl::SimpleAtoi(numbers[0], &number) || number < 1) return std::nullopt;
  return number;
}

}  // namespace

absl::StatusOr<Processors> ProcessorsOfJob(const Environment& environment) {
  std::optional<int> limit;
  if (const std::string text = environment.processors.value_or(""); !text.empty()) {
    limit = 0;
    if (!absl::SimpleAtoi(text, &*limit) || *limit < 1)
      return absl::InvalidArgumentError(
          absl::StrCat("MUSTER_PROCESSORS is ", Quoted(text), "; accepted: a whole number from 1"));
  }
  return UsableProcessors(limit);
}

ComputeThreads ComputeThreadsOf(const TaskConfig& task, const Environment& environment, const Processors& processors) {
  const std::optional<int> of_slurm = NumberIn(environment.slurm_cpus_per_task);
  int shared = processors.count;
  std::string whose = processors.why;
  if (of_slurm && environment.run_id && *of_slurm < shared) {
    shared = *of_slurm;
    whose = "by SLURM_CPUS_PER_TASK";
  }
  ComputeThreads here;
  if (const std::string host = HostOf(task.master()); !host.empty()) {
    here.computing = 0;
    for (const TaskId& other : task.cluster().AllTasks()) {
      if (HostOf(task.cluster().TaskAddress(other).value_or("")) != host) continue;
      ++(other.job == kPsJob ? here.ps : here.computing);
    }
    here.computing = std::max(1, here.computing);
  }
  if (const std::optional<int> of_openmp = NumberIn(environment.omp_num_threads)) {
    here.threads = *of_openmp;
    here.why = "OMP_NUM_THREADS";
  } else if (of_slurm && !environment.run_id) {
    here.threads = *of_slurm;
    here.why = "SLURM_CPUS_PER_TASK";
  } else {
    here.threads = std::max(1, (shared - here.ps) / here.computing);
    here.why = absl::StrCat(shared, shared == 1 ? " processor " : " processors ", whose,
                            "; tasks on this host: ", here.computing, " computing, ", here.ps, " ps");
  }
  return here;
}

}  // namespace muster
