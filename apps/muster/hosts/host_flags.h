// The flags that say on which hosts a command starts tasks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/hosts/host_setting.h"
#include "muster/launch/project/project_tree.h"
#include "muster/launch/spec/experiment_file.h"

namespace CLI {
class App;
}

namespace muster {

struct HostFlags {
  std::string on;  // empty: ssh if there are hosts, else this machine
  std::string hosts;
  std::string host_file;
  std::string grace;  // seconds; empty: HostPlan's
  std::string ssh_config;
  std::string ports;                    // as ParsePortRange; empty: any that are free
  std::string code_limit;               // as ParseMemory; empty: kUsualCodeLimit
  std::string hosts_by;                 // a file, as ReadCommandsFile
  std::vector<std::string> ray;         // "NAME=VALUE", as TakeRaySetting; "NAME=": as if it weren't stated
  std::vector<std::string> kubernetes;  // likewise, as TakeKubernetesSetting
  std::vector<std::string> spark;       // likewise, as TakeSparkSetting
  std::string address;                  // of the cluster, for --on ray and --on spark
  std::vector<std::string> slurm;       // "NAME=VALUE" or "NAME", as TakeSlurmSetting; "NAME=" takes muster's own away
};

// `slurm`: what that engine is to this command.
void AddHostFlags(CLI::App* command, HostFlags& flags, const std::string& slurm);
// Those for a job of Slurm, Ray, Spark or Kubernetes which holds an experiment.
void AddJobFlags(CLI::App* command, HostFlags& flags);
// Those of them that only name the hosts.
void AddHostListFlags(CLI::App* command, HostFlags& flags);

// Returns the commands of --hosts_by, or those of an experiment file, with the number of hosts that --hosts or `hosts`
// of the file says; nullopt: nothing says --on command. `folder`: of the experiment file. InvalidArgument and NotFound
// as for HostsOf.
absl::StatusOr<std::optional<CommandSetting>> CommandsOf(const HostFlags& flags, const HostsSpec& spec,
                                                         const std::string& folder);

// Returns the hosts that the flags name, with --on slurm those that Slurm has told this process in `environment`
// ("NAME=VALUE"); none: this machine is meant. InvalidArgument, or NotFound for a host file that isn't there, names the
// flag and what is accepted.
absl::StatusOr<std::vector<Host>> HostsOf(const HostFlags& flags, const std::vector<std::string>& environment);

// What was given of where an experiment runs, by key of the experiment file ("hosts", "on").
std::map<std::string, std::string> GivenHostFlags(const HostFlags& flags);

// Returns where an experiment runs: a flag wins over the file, whose paths begin in `folder`. InvalidArgument or
// NotFound as above.
absl::StatusOr<HostSetting> HostSettingOf(const HostFlags& flags, const HostsSpec& spec, const std::string& folder);

// Returns the files of the folder that hosts would get, without `left_out` as in ListProject. InvalidArgument: they are
// more than --code_limit.
absl::StatusOr<ProjectFiles> CodeForHosts(const HostFlags& flags, const std::string& folder,
                                          const std::vector<std::string>& left_out = {});

// Returns the range of --ports; nullopt without. InvalidArgument as above.
absl::StatusOr<std::optional<PortRange>> PortsIn(const HostFlags& flags);

// Returns the plan for these hosts, without a placement. InvalidArgument as above.
absl::StatusOr<HostPlan> HostPlanOf(const HostFlags& flags, std::vector<Host> hosts);

}  // namespace muster
