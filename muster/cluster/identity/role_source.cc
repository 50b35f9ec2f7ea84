#include "muster/cluster/identity/role_source.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"
#include "muster/cluster/slurm/slurm_step.h"

namespace muster {
namespace {

constexpr char kResolveVariable[] = "MUSTER_RESOLVE";
// Steps of one job have keys so far apart that 61 neighbouring jobs have other ports than its second step.
constexpr uint64_t kKeysOfAStep = 61;

// What the sources say that aren't text of the user's: an error there counts only if that source is chosen.
struct FoundRoles {
  absl::StatusOr<TorchrunAnswer> torchrun;
  absl::StatusOr<SlurmAnswer> slurm;

  bool has_torchrun() const { return !torchrun.ok() || torchrun->world || !torchrun->alone.empty(); }
  bool has_slurm() const { return !slurm.ok() || slurm->step; }
};

struct RoleNumbers {
  std::optional<int> ps;
  std::optional<int> first_port;
};

struct RoleSourceName {
  const char* word;  // in MUSTER_RESOLVE
  RoleSource source;
  const char* shown;
};

constexpr RoleSourceName kRoleSources[] = {{"none", RoleSource::kAlone, "alone"},
                                           {"tf_config", RoleSource::kTfConfig, "TF_CONFIG"},
                                           {"torchrun", RoleSource::kTorchrun, "torchrun's variables"},
                                           {"slurm", RoleSource::kSlurm, "Slurm's step"}};

absl::StatusOr<std::optional<RoleSource>> ParseResolve(const std::string& word) {
  if (word.empty()) return std::nullopt;
  for (const RoleSourceName& name : kRoleSources)
    if (word == name.word) return name.source;
  return absl::InvalidArgumentError(absl::StrCat(kResolveVariable, ": ", Quoted(word),
                                                 " is no source of roles; accepted: none, tf_config, torchrun, slurm"));
}

absl::StatusOr<std::optional<int>> ParseRoleNumber(const char* flag, const char* variable,
                                                   const std::optional<std::string>& given,
                                                   const std::optional<std::string>& standard, int least, int most) {
  const bool by_flag = given.has_value();
  const std::string text = by_flag ? *given : standard.value_or("");
  if (text.empty() && !by_flag) return std::nullopt;
  const auto number = ParseTaskIndex(text);
  if (number.ok() && *number >= least && *number <= most) return *number;
  return absl::InvalidArgumentError(
      absl::StrCat(by_flag ? flag : variable, ": ", Quoted(text), "; accepted: a number from ", least, " to ", most));
}

absl::StatusOr<RoleNumbers> ReadRoleNumbers(const RoleSayings& sayings, const RoleVariables& variables) {
  RoleNumbers numbers;
  ASSIGN_OR_RETURN(numbers.ps, ParseRoleNumber("--ps", "MUSTER_PS", sayings.ps, variables.ps, 0, kMaxTaskIndex));
  ASSIGN_OR_RETURN(numbers.first_port, ParseRoleNumber("--first_port", "MUSTER_FIRST_PORT", sayings.first_port,
                                                       variables.first_port, 1, 65535));
  return numbers;
}

// The order of precedence is written here, and nowhere else.
RoleSource FirstThatSaysSomething(const RoleSayings& sayings, const RoleVariables& variables, const FoundRoles& found) {
  if (sayings.flags) return RoleSource::kFlags;
  if (sayings.tf_config) return RoleSource::kTfConfig;
  if (found.has_torchrun()) return RoleSource::kTorchrun;
  // The launcher is itself below Slurm then, whose variables its tasks inherit.
  if (found.has_slurm() && !variables.has_launcher) return RoleSource::kSlurm;
  return RoleSource::kAlone;
}

absl::Status SourceIsMissing(const char* word, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(kResolveVariable, "=", word, ", but ", why));
}

absl::StatusOr<Role> FromTorchrun(const RoleNumbers& numbers, const TorchrunAnswer& answer) {
  Role role{.source = RoleSource::kTorchrun};
  if (!answer.world) {
    role.source = RoleSource::kAlone;
    role.notice = "alone: " + answer.alone;
    return role;
  }
  std::vector<RankPlace> places;
  for (int rank = 0; rank < answer.world->size; ++rank) places.push_back({"127.0.0.1", rank});
  const uint64_t key = static_cast<uint64_t>(answer.world->master_port);
  ASSIGN_OR_RETURN(role.ranks,
                   MakeRankCluster(places, answer.world->rank, numbers.ps.value_or(0), key, numbers.first_port));
  role.notice = absl::StrCat("role from torchrun: rank ", answer.world->rank, " of ", answer.world->size);
  return role;
}

absl::StatusOr<Role> FromSlurm(const RoleNumbers& numbers, const SlurmStep& step, bool has_token) {
  Role role{.source = RoleSource::kSlurm};
  const bool one_node = std::all_of(step.places.begin(), step.places.end(),
                                    [&](const SlurmPlace& place) { return place.node == step.places[0].node; });
  if (!one_node && !has_token)
    return absl::InvalidArgumentError(absl::StrCat("the tasks of Slurm's step ", step.Name(),
                                                   " are on several nodes and have no secret in common: before srun, "
                                                   "export MUSTER_JOB_TOKEN=$(openssl rand -hex 32); or train alone in "
                                                   "each of them: MUSTER_RESOLVE=none"));
  std::vector<RankPlace> places;
  for (const SlurmPlace& place : step.places) places.push_back({one_node ? "127.0.0.1" : place.node, place.local});
  const uint64_t key = step.job_id + kKeysOfAStep * step.step_id;
  ASSIGN_OR_RETURN(role.ranks, MakeRankCluster(places, step.proc_id, numbers.ps.value_or(0), key, numbers.first_port));
  role.notice =
      absl::StrCat("role from Slurm: task ", step.proc_id, " of ", step.places.size(), " of step ", step.Name());
  return role;
}

// Returns the role as the chosen source has it, without what is to be said about the others.
absl::StatusOr<Role> FromSource(RoleSource source, bool demanded, const RoleSayings& sayings,
                                const RoleVariables& variables, const FoundRoles& found, const RoleNumbers& numbers) {
  switch (source) {
    case RoleSource::kFlags:
      return Role{.source = source};
    case RoleSource::kTfConfig:
      if (!sayings.tf_config)
        return SourceIsMissing("tf_config", "TF_CONFIG isn't set, or has neither cluster nor task");
      return Role{.source = source};
    case RoleSource::kTorchrun: {
      RETURN_IF_ERROR(found.torchrun.status());
      return FromTorchrun(numbers, *found.torchrun);
    }
    case RoleSource::kSlurm: {
      RETURN_IF_ERROR(found.slurm.status());
      if (!found.slurm->step)
        return SourceIsMissing("slurm", found.slurm->alone.empty() ? "SLURM_JOB_ID isn't set" : found.slurm->alone);
      return FromSlurm(numbers, *found.slurm->step, variables.has_token);
    }
    case RoleSource::kAlone:
      break;
  }
  Role role;
  if (demanded)
    role.notice = "alone: MUSTER_RESOLVE=none";
  else if (variables.has_launcher && found.has_slurm())
    role.notice = "alone: muster's launcher has started this task without others";
  else if (!variables.has_launcher && found.slurm.ok() && !found.slurm->alone.empty())
    role.notice = absl::StrCat("alone: ", found.slurm->alone);
  return role;
}

// Returns the sources that say something and weren't chosen, as "TF_CONFIG (MUSTER_RESOLVE=tf_config)".
std::string NotUsed(RoleSource chosen, const RoleSayings& sayings, const RoleVariables& variables,
                    const FoundRoles& found) {
  // A launcher's tasks inherit what is around the launcher, and that is no news.
  if (chosen == RoleSource::kTfConfig && variables.has_launcher) return "";
  std::vector<std::string> names;
  for (const RoleSourceName& name : kRoleSources) {
    // Flags for the task alone leave the cluster to TF_CONFIG.
    const bool has_tf_config = sayings.tf_config && (chosen != RoleSource::kFlags || sayings.cluster_flags);
    const bool says = (name.source == RoleSource::kTfConfig && has_tf_config) ||
                      (name.source == RoleSource::kTorchrun && found.has_torchrun()) ||
                      (name.source == RoleSource::kSlurm && found.has_slurm());
    if (!says || name.source == chosen) continue;
    const bool may_be_chosen = chosen != RoleSource::kFlags;
    names.push_back(may_be_chosen ? absl::StrCat(name.shown, " (", kResolveVariable, "=", name.word, ")") : name.shown);
  }
  return absl::StrJoin(names, ", ");
}

// Completes the line for people.
void TellOthers(Role& role, RoleSource chosen, const std::string& ignored_resolve, const RoleSayings& sayings,
                const std::string& not_used) {
  std::vector<std::string> ignored;
  if (!not_used.empty()) ignored.push_back(not_used);
  if (!ignored_resolve.empty()) ignored.push_back(absl::StrCat(kResolveVariable, "=", ignored_resolve));
  if (!role.ranks && sayings.ps) ignored.push_back(absl::StrCat("--ps ", *sayings.ps));
  if (!role.ranks && sayings.first_port) ignored.push_back(absl::StrCat("--first_port ", *sayings.first_port));
  if (role.ranks) {
    const RankCluster& ranks = *role.ranks;
    absl::StrAppend(&role.notice, " is ", ranks.task.ToString(), " at ",
                    ranks.cluster.TaskAddress(ranks.task).value_or(""), " (", ranks.cluster.Summary(), ")");
  }
  if (ignored.empty()) return;
  if (role.notice.empty())
    role.notice = chosen == RoleSource::kFlags      ? "role from flags"
                  : chosen == RoleSource::kTfConfig ? "role from TF_CONFIG"
                                                    : "alone";
  absl::StrAppend(&role.notice, "; not used: ", absl::StrJoin(ignored, ", "));
}

}  // namespace

absl::StatusOr<Role> FindRole(const RoleSayings& sayings, const RoleVariables& variables) {
  const std::string word = variables.resolve.value_or("");
  ASSIGN_OR_RETURN(const std::optional<RoleSource> asked, ParseResolve(word));
  // What was said to this very process counts more than a variable that a shell exports to all of its programs.
  const bool is_told = sayings.flags || (variables.has_launcher && sayings.tf_config);
  const bool demanded = asked.has_value() && !is_told;
  const FoundRoles found{.torchrun = ReadTorchrun(variables.torchrun, demanded && asked == RoleSource::kTorchrun),
                         .slurm = ReadSlurm(variables.slurm, demanded && asked == RoleSource::kSlurm)};
  const RoleSource chosen = demanded ? *asked : FirstThatSaysSomething(sayings, variables, found);
  // What a shell exports for other programs must not stop one that doesn't use it.
  const bool by_number = chosen == RoleSource::kTorchrun || chosen == RoleSource::kSlurm;
  ASSIGN_OR_RETURN(const RoleNumbers numbers, ReadRoleNumbers(sayings, by_number ? variables : RoleVariables{}));
  ASSIGN_OR_RETURN(Role role, FromSource(chosen, demanded, sayings, variables, found, numbers));
  const bool resolve_ignored = asked.has_value() && !demanded && asked != chosen;
  TellOthers(role, chosen, resolve_ignored ? word : "", sayings, NotUsed(chosen, sayings, variables, found));
  return role;
}

}  // namespace muster
