#include "muster/launch/engines/slurm/step_command.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Where the cluster is, how to be somebody there, and what tells tasks of the job without being an option of srun.
constexpr absl::string_view kKeptVariables[] = {
    "SLURM_JOB_ID=",   "SLURM_CONF=",           "SLURM_CONF_SERVER=",  "SLURM_JWT=",
    "SLURM_JOB_NAME=", "SLURM_JOB_START_TIME=", "SLURM_JOB_END_TIME=", "SLURM_SUBMIT_",
    "SLURM_ARRAY_",    "SLURM_RESTART_COUNT=",  "SLURM_CLUSTER_NAME=", "SLURM_WORKING_CLUSTER=",
    "MUSTER_HOME="};
constexpr absl::string_view kScrubbedVariables[] = {"SLURM_", "SRUN_", "SALLOC_", "SBATCH_", "MUSTER_"};

std::vector<std::string> StepOf(const AgentProgram& program, size_t nodes, const std::string& node) {
  std::vector<std::string> words = {"srun", absl::StrCat("--nodes=", nodes), absl::StrCat("--ntasks=", nodes),
                                    "--ntasks-per-node=1"};
  if (!node.empty()) words.push_back(absl::StrCat("--nodelist=", node));
  // A step that names no CPUs and no GPUs gets all that the job has on each node, beside other steps with --overlap.
  // One agent's end must not end the others: --wait is about a normal end, --kill-on-bad-exit about another one,
  // --no-kill about that of a node.
  for (const char* word : {"--overlap", "--mem=0", "--cpu-bind=none", "--mpi=none", "--kill-on-bad-exit=0", "--no-kill",
                           "--wait=0", "--input=none", "--label", "--export=ALL", "--chdir=/"})
    words.emplace_back(word);
  words.insert(words.end(),
               {program.muster, "agent", "--serve", program.job, "--rendezvous", program.rendezvous, "--host_variable",
                "SLURMD_NODENAME", "--grace", absl::StrCat(absl::ToInt64Seconds(program.grace))});
  return words;
}

bool BeginsWithOneOf(const std::string& text, const absl::string_view* begin, const absl::string_view* end) {
  return std::any_of(begin, end, [&](absl::string_view one) { return absl::StartsWith(text, one); });
}

}  // namespace

std::vector<std::string> StepOnAllNodes(const AgentProgram& program, size_t nodes) {
  return StepOf(program, nodes, "");
}

std::vector<std::string> StepOnOneNode(const AgentProgram& program, const std::string& node) {
  return StepOf(program, 1, node);
}

std::vector<std::string> StepEnvironment(const std::vector<std::string>& own) {
  std::vector<std::string> environment;
  for (const std::string& variable : own)
    if (BeginsWithOneOf(variable, std::begin(kKeptVariables), std::end(kKeptVariables)) ||
        !BeginsWithOneOf(variable, std::begin(kScrubbedVariables), std::end(kScrubbedVariables)))
      environment.push_back(variable);
  return environment;
}

std::vector<std::string> SubmitEnvironment(const std::vector<std::string>& own) {
  constexpr absl::string_view kOfTheCluster[] = {"SLURM_CONF=", "SLURM_CONF_SERVER=", "SLURM_JWT="};
  constexpr absl::string_view kOfAJob[] = {"SLURM_", "SRUN_", "SALLOC_", "MUSTER_", "SLURMD_", "PMI",
                                           // These change what the commands answer, or how many jobs there are.
                                           "SQUEUE_", "SACCT_", "SCANCEL_", "SBATCH_WAIT",
                                           "SBATCH_CLUSTERS=", "SBATCH_ARRAY_INX="};
  std::vector<std::string> environment;
  for (const std::string& variable : own)
    if (BeginsWithOneOf(variable, std::begin(kOfTheCluster), std::end(kOfTheCluster)) ||
        !BeginsWithOneOf(variable, std::begin(kOfAJob), std::end(kOfAJob)))
      environment.push_back(variable);
  return environment;
}

}  // namespace muster
