// Where a process learns its role, where several sources may say something: its flags, TF_CONFIG, torchrun's variables,
// Slurm's. The first of these that says something counts, and without any the process is alone. MUSTER_RESOLVE names
// another one. docs/roles.md has the rules, and the reasons for them. Pure, thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "muster/cluster/identity/rank_cluster.h"
#include "muster/cluster/identity/torchrun.h"
#include "muster/cluster/slurm/slurm_variables.h"

namespace muster {

// What the environment says about roles, but TF_CONFIG.
struct RoleVariables {
  std::optional<std::string> resolve;     // MUSTER_RESOLVE
  std::optional<std::string> ps;          // MUSTER_PS: the default of --ps
  std::optional<std::string> first_port;  // MUSTER_FIRST_PORT: the default of --first_port
  bool has_launcher = false;              // `muster run` or `muster train` started this process
  bool has_token = false;                 // there is a secret that the job's tasks share
  TorchrunVariables torchrun;
  SlurmVariables slurm;
};

// What the flags and TF_CONFIG say about roles.
struct RoleSayings {
  bool flags = false;          // the flags name hosts or this task
  bool cluster_flags = false;  // the flags name hosts
  bool tf_config = false;      // TF_CONFIG has a cluster or a task
  std::optional<std::string> ps;
  std::optional<std::string> first_port;
};

enum class RoleSource { kFlags, kTfConfig, kTorchrun, kSlurm, kAlone };

struct Role {
  RoleSource source = RoleSource::kAlone;
  std::optional<RankCluster> ranks;  // with torchrun and Slurm
  std::string notice;                // for people, one line: what was chosen, and what not; empty: nothing unexpected
};

// InvalidArgument: MUSTER_RESOLVE is no source's name, or its source isn't there; what the chosen source says is
// incomplete or contradicts itself; tasks on several nodes without a token; --ps or --first_port don't fit.
absl::StatusOr<Role> FindRole(const RoleSayings& sayings, const RoleVariables& variables);

}  // namespace muster
