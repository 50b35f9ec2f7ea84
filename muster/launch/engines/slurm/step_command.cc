#include "muster/launch/engines/slurm/step_command.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "muster/launch/system/users_variables.h"

namespace muster {
namespace {

// Where the cluster is, how to be somebody there, and what tells tasks of the job without being an option of srun.
constexpr absl::string_view kKeptVariables[] = {
    "SLURM_JOB_ID=",   "SLURM_CONF=",           "SLURM_CONF_SERVER=",  "SLURM_JWT=",
    "SLURM_JOB_NAME=", "SLURM_JOB_START_TIME=", "SLURM_JOB_END_TIME=", "SLURM_SUBMIT_",
    "SLURM_ARRAY_",    "SLURM_RESTART_COUNT=",  "SLURM_CLUSTER_NAME=", "SLURM_WORKING_CLUSTER="};
constexpr absl::string_view kScrubbedVariables[] = {"SLURM_", "SRUN_", "SALLOC_", "SBATCH_", "MUSTER_"};

// Where the cluster is, and what isn't for commands about jobs: what is of another job, and what changes what the
// commands answer, or how many jobs there are.
constexpr absl::string_view kOfTheCluster[] = {"SLURM_CONF=", "SLURM_CONF_SERVER=", "SLURM_JWT="};
constexpr absl::string_view kNotForJobs[] = {"SLURM_",   "SRUN_",       "SALLOC_",          "MUSTER_",
                                             "SLURMD_",  "PMI",         "SQUEUE_",          "SACCT_",
                                             "SCANCEL_", "SBATCH_WAIT", "SBATCH_CLUSTERS=", "SBATCH_ARRAY_INX="};

std::vector<std::string> StepOf(const AgentProgram& program, size_t nodes, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"srun", absl::StrCat("--nodes=", nodes), absl::StrCat("--ntasks=", nodes),
                                    "--ntasks-per-node=1"};
  words.insert(words.end(), more.begin(), more.end());
  // A step that names no CPUs and no GPUs gets all that the job has on each node, beside other steps with --overlap.
  // One agent's end must not end the others: --wait is about a normal end, --kill-on-bad-exit about another one,
  // --no-kill about that of a node.
  for (const char* word : {"--overlap", "--mem=0", "--cpu-bind=none", "--mpi=none", "--kill-on-bad-exit=0", "--no-kill",
                           "--wait=0", "--input=none", "--label", "--export=ALL", "--chdir=/"})
    words.emplace_back(word);
  words.insert(words.end(),
               {program.muster, "agent", "--serve", program.job, "--rendezvous", program.rendezvous, "--host_variable",
                "SLURMD_NODENAME", "--grace", absl::StrCat(absl::ToInt64Seconds(program.grace))});
  if (program.in_job) words.emplace_back("--supervisor_in_job");
  return words;
}

// Returns the variables that begin with one of `kept`, or with none of `dropped`, and what the user sets for muster.
std::vector<std::string> Filtered(const std::vector<std::string>& own, absl::Span<const absl::string_view> kept,
                                  absl::Span<const absl::string_view> dropped) {
  std::vector<std::string> environment;
  const auto begins_with_one_of = [](const std::string& text, absl::Span<const absl::string_view> beginnings) {
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](absl::string_view one) { return absl::StartsWith(text, one); });
  };
  std::copy_if(own.begin(), own.end(), std::back_inserter(environment), [&](const std::string& variable) {
    return begins_with_one_of(variable, kept) || begins_with_one_of(variable, kUsersVariables) ||
           !begins_with_one_of(variable, dropped);
  });
  return environment;
}

}  // namespace

std::vector<std::string> StepOnAllNodes(const AgentProgram& program, size_t nodes) {
  return StepOf(program, nodes, {});
}

std::vector<std::string> StepOnNodes(const AgentProgram& program, const std::vector<std::string>& nodes,
                                     std::optional<int> gpus) {
  std::vector<std::string> more = {absl::StrCat("--nodelist=", absl::StrJoin(nodes, ","))};
  if (gpus.has_value()) more.push_back(*gpus > 0 ? absl::StrCat("--gres=gpu:", *gpus) : "--gres=none");
  return StepOf(program, nodes.size(), more);
}

std::vector<std::string> StepEnvironment(const std::vector<std::string>& own) {
  return Filtered(own, kKeptVariables, kScrubbedVariables);
}

std::vector<std::string> SubmitEnvironment(const std::vector<std::string>& own) {
  return Filtered(own, kOfTheCluster, kNotForJobs);
}

}  // namespace muster
