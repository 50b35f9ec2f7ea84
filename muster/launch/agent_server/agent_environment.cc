#include "muster/launch/agent_server/agent_environment.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "muster/base/net/free_ports.h"
#include "muster/base/text/environment_list.h"
#include "muster/launch/system/users_variables.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

// The CPUs of the job on this node, in a step that names none itself.
constexpr absl::string_view kCpusOnNode = "SLURM_CPUS_ON_NODE=";
constexpr absl::string_view kPath = "PATH=";
// Slurm's variables about the job. The others describe the step of agents, in which a program would take
// itself for one of several tasks (SLURM_PROCID) and wait for the rest.
constexpr absl::string_view kOfSlurmsJob[] = {
    "SLURM_JOB_", "SLURM_JOBID=",        "SLURM_ARRAY_",        "SLURM_SUBMIT_",
    "SLURM_CONF", "SLURM_CLUSTER_NAME=", "SLURM_RESTART_COUNT="};

bool StartsWithOneOf(const std::string& variable, absl::Span<const absl::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](absl::string_view one) { return absl::StartsWith(variable, one); });
}

bool IsForTasks(const std::string& variable) {
  if (StartsWithOneOf(variable, {"SLURM_", "SRUN_"})) return StartsWithOneOf(variable, kOfSlurmsJob);
  return StartsWithOneOf(variable, kUsersVariables) || !StartsWithOneOf(variable, {"SSH_", "MUSTER_"});
}

}  // namespace

std::vector<std::string> TaskEnvironment(const std::vector<std::string>& own, const std::string& program_folder) {
  std::vector<std::string> environment;
  std::string path = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string& variable : own) {
    if (absl::StartsWith(variable, kPath)) {
      path = variable.substr(kPath.size());
    } else if (absl::StartsWith(variable, kCpusOnNode)) {
      environment.push_back(absl::StrCat(kProcessorsVariable, "=", variable.substr(kCpusOnNode.size())));
    } else if (IsForTasks(variable)) {
      environment.push_back(variable);
    }
  }
  environment.push_back(absl::StrCat(kPath, program_folder, ":", path));
  return environment;
}

// "CLIENT PORT SERVER PORT", see sshd(8).
std::string ReachedAddress(const std::vector<std::string>& own) {
  const std::vector<std::string> words = absl::StrSplit(VariableIn(own, "SSH_CONNECTION"), ' ');
  return words.size() == 4 && !words[2].empty() ? words[2] : kLoopbackAddress;
}

}  // namespace muster
