#include "apps/muster/hosts/host_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/backends/choice/make_backend.h"
#include "muster/launch/engines/slurm/allocation.h"
#include "muster/launch/spec/commands_reader.h"
#include "muster/launch/task/resources.h"
#include "muster/launch/task_run/code_copy.h"

namespace muster {
namespace {

absl::StatusOr<absl::Duration> ParseGrace(const std::string& text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && std::isfinite(seconds) && absl::Seconds(seconds) >= kLeastGrace &&
      absl::Seconds(seconds) <= kMostGrace)
    return absl::Seconds(seconds);
  return absl::InvalidArgumentError(absl::StrCat("--grace '", text, "': accepted are seconds from ",
                                                 absl::ToInt64Seconds(kLeastGrace), " to ",
                                                 absl::ToInt64Seconds(kMostGrace)));
}

// "NAME=VALUE", "NAME=" (no value) or "NAME" (an empty one).
std::pair<std::string, std::optional<std::string>> NameAndValue(const std::string& text) {
  const size_t equals = text.find('=');
  std::optional<std::string> value = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (equals != std::string::npos && value->empty()) value.reset();
  return {text.substr(0, equals), std::move(value)};
}

const std::vector<std::string>& JobFlagsOf(const std::string& engine, const HostFlags& flags) {
  if (engine == kRayEngine) return flags.ray;
  if (engine == kSparkEngine) return flags.spark;
  return engine == kKubernetesEngine ? flags.kubernetes : flags.slurm;
}

absl::Status TakeJobSetting(HostSetting& setting, const std::string& name, const std::optional<std::string>& value) {
  if (setting.ray.has_value()) return TakeRaySetting(*setting.ray, name, value);
  if (setting.spark.has_value()) return TakeSparkSetting(*setting.spark, name, value);
  if (setting.kubernetes.has_value()) return TakeKubernetesSetting(*setting.kubernetes, name, value);
  return TakeSlurmSetting(*setting.slurm, name, value);
}

// The file's options of the job of this engine, and a flag's in their place.
absl::StatusOr<HostSetting> JobSettingOf(const std::string& engine, const HostFlags& flags, const HostsSpec& spec) {
  if (!flags.hosts.empty() || !flags.host_file.empty() || !flags.ssh_config.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("--on ", engine, ": the hosts are the nodes of the job, --", engine,
                     " nodes=N says how many; accepted without --hosts, --host_file and --ssh_config"));
  HostSetting setting{.hosts = {}, .placement = spec.placement};
  if (engine == kRayEngine) setting.ray = spec.ray;
  if (engine == kSparkEngine) setting.spark = spec.spark;
  if (engine == kKubernetesEngine) setting.kubernetes = spec.kubernetes;
  if (engine == kSlurmEngine) setting.slurm = spec.slurm;
  for (const std::string& one : JobFlagsOf(engine, flags)) {
    const auto [name, value] = NameAndValue(one);
    // A name alone means something to Slurm, and a truth of Ray.
    const bool needs_value = engine == kKubernetesEngine || engine == kSparkEngine;
    if (needs_value && one.find('=') == std::string::npos)
      return absl::InvalidArgumentError(
          absl::StrCat("--", engine, " ", one, ": has no value; accepted: --", engine, " ", one, "=VALUE"));
    if (const absl::Status taken = TakeJobSetting(setting, name, value); !taken.ok())
      return absl::InvalidArgumentError(absl::StrCat("--", engine, " ", one, ": ", std::string(taken.message())));
  }
  if (!flags.address.empty())
    if (const absl::Status taken = TakeJobSetting(setting, "address", flags.address); !taken.ok())
      return absl::InvalidArgumentError(absl::StrCat("--address: ", std::string(taken.message())));
  if (setting.kubernetes.has_value()) RETURN_IF_ERROR(CheckKubernetesSetting(*setting.kubernetes));
  if (!flags.grace.empty()) {
    ASSIGN_OR_RETURN(setting.grace, ParseGrace(flags.grace));
  } else {
    setting.grace = spec.grace.value_or(setting.grace);
  }
  return setting;
}

// What stands beside the commands of kCommandEngine.
absl::StatusOr<HostSetting> SettingOfCommands(CommandSetting commands, const HostFlags& flags, const HostsSpec& spec) {
  HostSetting setting{.hosts = {}, .command = std::move(commands), .placement = spec.placement};
  setting.grace = spec.grace.value_or(setting.grace);
  if (!flags.grace.empty()) {
    ASSIGN_OR_RETURN(setting.grace, ParseGrace(flags.grace));
  }
  return setting;
}

absl::Status CheckEngine(const HostFlags& flags, bool has_hosts) {
  const std::vector<std::string> names = BackendNames();
  if (std::find(names.begin(), names.end(), flags.on) == names.end())
    return absl::InvalidArgumentError(absl::StrCat("--on '", flags.on, "'", NearestHint(flags.on, names),
                                                   "; accepted: ", absl::StrJoin(names, ", ")));
  if (flags.on == kSshEngine && !has_hosts)
    return absl::InvalidArgumentError("--on ssh: on which hosts? accepted with --hosts a,b or --host_file FILE");
  if (flags.on == kThisMachine && has_hosts)
    return absl::InvalidArgumentError(
        "--on local: runs on this machine only; accepted without --hosts and --host_file");
  if (flags.on == kSlurmEngine && (has_hosts || !flags.ssh_config.empty()))
    return absl::InvalidArgumentError(
        "--on slurm: the hosts are the nodes of the allocation; accepted without --hosts, --host_file and "
        "--ssh_config");
  if (flags.on == kCommandEngine)
    return absl::InvalidArgumentError("--on command: accepted with muster run and muster train");
  if (flags.on == kRayEngine)
    return absl::InvalidArgumentError("--on ray: a job of Ray holds a whole experiment; accepted with muster train");
  if (flags.on == kSparkEngine)
    return absl::InvalidArgumentError(
        "--on spark: a job of Spark holds a whole experiment; accepted with muster train");
  if (flags.on == kKubernetesEngine)
    return absl::InvalidArgumentError(
        "--on kubernetes: a job of Kubernetes holds a whole experiment; accepted with muster train");
  return absl::OkStatus();
}

// Returns how many hosts a text asks for.
absl::StatusOr<int> CountOfHosts(const std::string& text) {
  int count = 0;
  if (absl::SimpleAtoi(text, &count) && count >= 1 && count <= kMostCommandHosts) return count;
  return absl::InvalidArgumentError(absl::StrCat(
      "--on command: hosts is '", OneLine(text), "'; accepted: how many hosts acquire shall get, a whole number from ",
      "1 to ", kMostCommandHosts, ", in --hosts or in `hosts` of the experiment file"));
}

// As many tasks as there are go to each node: how many a program wants for its CPUs is not Slurm's to say.
absl::StatusOr<std::vector<Host>> NodesOfSlurm(const std::vector<std::string>& environment) {
  const absl::StatusOr<SlurmAllocation> allocation = AllocationIn(environment);
  if (!allocation.ok())
    return absl::InvalidArgumentError(absl::StrCat("--on slurm: ", std::string(allocation.status().message())));
  std::vector<Host> hosts;
  for (const AllocatedNode& node : allocation->nodes) hosts.push_back({.name = node.name});
  return hosts;
}

bool AllAmong(const std::map<std::string, std::vector<std::string>>& placement, const std::vector<Host>& hosts) {
  for (const auto& [role, names] : placement)
    for (const std::string& name : names)
      if (std::none_of(hosts.begin(), hosts.end(), [&name](const Host& host) { return host.name == name; }))
        return false;
  return true;
}

// All of an experiment's setting but its ports.
absl::StatusOr<HostSetting> WhereTasksRun(const HostFlags& flags, const HostsSpec& spec, const std::string& folder) {
  HostFlags wanted = flags;
  const bool flags_have_hosts = !flags.hosts.empty() || !flags.host_file.empty();
  const bool file_has_hosts = !spec.hosts.empty() || !spec.host_file.empty();
  if (flags.on.empty() && spec.on.empty() && spec.command.has_value() && flags.hosts.empty())
    return absl::InvalidArgumentError(
        "the experiment file has `hosts_by`, but nothing says that its commands shall get the hosts; accepted: `on: "
        "command` there or --on command; --on local runs it here");
  if (flags.on.empty() && spec.on.empty() && !flags_have_hosts) {
    const std::string engine = spec.slurm != SlurmSetting()             ? kSlurmEngine
                               : spec.ray != RaySetting()               ? kRayEngine
                               : spec.kubernetes != KubernetesSetting() ? kKubernetesEngine
                               : spec.spark != SparkSetting()           ? kSparkEngine
                                                                        : "";
    if (!engine.empty())
      return absl::InvalidArgumentError(absl::StrCat(
          "the experiment file has `", engine, "`, but nothing says that a job shall run it; accepted: `on: ", engine,
          "` there or --on ", engine, "; --on local runs it here"));
  }
  // A flag for hosts is for hosts, whatever the file says; --on local is for this machine, whatever hosts the file has.
  if (wanted.on.empty() && !flags_have_hosts) wanted.on = spec.on;
  if (wanted.on.empty() && file_has_hosts) wanted.on = kSshEngine;
  if (wanted.on != kSlurmEngine && !flags.slurm.empty())
    return absl::InvalidArgumentError("--slurm: accepted with --on slurm only");
  if (wanted.on != kRayEngine && !flags.ray.empty())
    return absl::InvalidArgumentError("--ray: accepted with --on ray only");
  if (wanted.on != kKubernetesEngine && !flags.kubernetes.empty())
    return absl::InvalidArgumentError("--kubernetes: accepted with --on kubernetes only");
  if (wanted.on != kSparkEngine && !flags.spark.empty())
    return absl::InvalidArgumentError("--spark: accepted with --on spark only");
  if (wanted.on != kSparkEngine && wanted.on != kRayEngine && !flags.address.empty())
    return absl::InvalidArgumentError("--address: accepted with --on spark and --on ray only");
  if (wanted.on == kSlurmEngine || wanted.on == kRayEngine || wanted.on == kKubernetesEngine ||
      wanted.on == kSparkEngine)
    return JobSettingOf(wanted.on, flags, spec);
  ASSIGN_OR_RETURN(std::optional<CommandSetting> commands, CommandsOf(flags, spec, folder));
  if (commands.has_value()) return SettingOfCommands(*std::move(commands), flags, spec);
  HostSetting setting;
  if (!flags_have_hosts && wanted.on == kThisMachine) return setting;
  if (!flags_have_hosts && !file_has_hosts && wanted.on == kSshEngine)
    return absl::InvalidArgumentError(
        "on which hosts? accepted for ssh: --hosts a,b or --host_file FILE, or hosts or host_file in the experiment "
        "file");
  if (!flags_have_hosts && !spec.host_file.empty()) wanted.host_file = JoinPath(folder, spec.host_file);
  if (flags_have_hosts || spec.hosts.empty()) {
    ASSIGN_OR_RETURN(setting.hosts, HostsOf(wanted, {}));
  } else {
    RETURN_IF_ERROR(CheckEngine(wanted, /*has_hosts=*/true));
    setting.hosts = spec.hosts;
  }
  if (setting.hosts.empty()) return setting;
  // Hosts of a flag take the place of the file's, and so of their placement.
  if (!flags_have_hosts || AllAmong(spec.placement, setting.hosts)) setting.placement = spec.placement;
  if (flags.ssh_config.empty() && !spec.ssh_config.empty()) wanted.ssh_config = JoinPath(folder, spec.ssh_config);
  ASSIGN_OR_RETURN(HostPlan plan, HostPlanOf(wanted, setting.hosts));
  setting.grace = flags.grace.empty() ? spec.grace.value_or(plan.grace) : plan.grace;
  if (!plan.ssh_config.empty()) setting.ssh_config = std::filesystem::absolute(plan.ssh_config).string();
  return setting;
}

}  // namespace

void AddHostListFlags(CLI::App* command, HostFlags& flags) {
  // As an unset variable of a shell would make it; without the check it would mean this machine.
  const auto names_none = [](const std::string& text) {
    return text.empty() ? std::string("names no host; accepted: H1,H2,...") : std::string();
  };
  command->add_option("--hosts", flags.hosts, "Hosts that ssh reaches; H:N takes at most N tasks that train")
      ->check(CLI::Validator(names_none, ""))
      ->type_name("H1,H2,...");
  command
      ->add_option("--host_file,--host-file", flags.host_file,
                   absl::StrCat("Hosts from a file, one a line: ", kHostLineForms))
      ->type_name("FILE");
  command->add_option("--ssh_config,--ssh-config", flags.ssh_config, "Configuration file for ssh (default: your own)")
      ->type_name("FILE");
}

void AddHostFlags(CLI::App* command, HostFlags& flags, const std::string& slurm) {
  command
      ->add_option("--on", flags.on,
                   absl::StrCat("Where the tasks run: ", absl::StrJoin(BackendNames(), ", "), " (", slurm,
                                "; default: ssh if hosts are given, else local)"))
      ->type_name("ENGINE");
  AddHostListFlags(command, flags);
  command
      ->add_option("--hosts_by,--hosts-by", flags.hosts_by,
                   "With --on command: a file of the commands that get hosts and reach them (docs/command_engine.md); "
                   "--hosts N says how many")
      ->type_name("FILE");
  command
      ->add_option(
          "--grace", flags.grace,
          "How long tasks on hosts go on when this command can't reach them any more (default 30, at least 10)")
      ->type_name("SECONDS");
  command
      ->add_option(
          "--ports", flags.ports,
          "The only numbers for ports of tasks, on every host, as a firewall lets them through; each host needs "
          "one more than it has tasks (default any that are free)")
      ->type_name("FIRST-LAST");
  command
      ->add_option("--code_limit,--code-limit", flags.code_limit,
                   "The most that is copied to each host; more is refused with the largest files (default 256MB)")
      ->type_name("SIZE");
}

void AddJobFlags(CLI::App* command, HostFlags& flags) {
  command
      ->add_option(
          "--slurm", flags.slurm,
          "With --on slurm: an option of sbatch by its long name, as nodes=2 or exclusive; NAME= takes muster's "
          "own away; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--ray", flags.ray,
          "With --on ray: nodes, address (of the dashboard), python (that has Ray), autoscaler or resources.NAME of "
          "each node; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--spark", flags.spark,
          "With --on spark: nodes (tasks of Spark), address (a master), python (that has pyspark), start_timeout or "
          "conf.NAME, a setting of Spark; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--address", flags.address,
                   "With --on spark: the master, as spark://HOST:7077, yarn or local-cluster[2,1,1024]; with --on ray: "
                   "the dashboard")
      ->type_name("ADDRESS");
  command
      ->add_option(
          "--kubernetes", flags.kubernetes,
          "With --on kubernetes: nodes (pods), image, namespace, context or another key of docs/kubernetes.md; "
          "may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

absl::StatusOr<std::optional<CommandSetting>> CommandsOf(const HostFlags& flags, const HostsSpec& spec,
                                                         const std::string& folder) {
  const std::string& on = flags.on.empty() ? spec.on : flags.on;
  if (on != kCommandEngine) {
    if (flags.hosts_by.empty()) return std::nullopt;
    return absl::InvalidArgumentError("--hosts_by: accepted with --on command only");
  }
  if (!flags.host_file.empty() || !flags.ssh_config.empty() || !spec.host_file.empty())
    return absl::InvalidArgumentError(
        "--on command: acquire says which hosts there are; accepted without --host_file and --ssh_config");
  std::optional<CommandSetting> setting = spec.command;
  if (setting.has_value()) setting->folder = std::filesystem::absolute(folder).lexically_normal().string();
  if (!flags.hosts_by.empty()) {
    ASSIGN_OR_RETURN(setting, ReadCommandsFile(flags.hosts_by));
  }
  if (!setting.has_value())
    return absl::InvalidArgumentError(
        "--on command: by which commands? accepted with --hosts_by FILE, or `hosts_by` in the experiment file, which "
        "say acquire, start, state and release");
  if (!flags.hosts.empty()) {
    ASSIGN_OR_RETURN(setting->hosts, CountOfHosts(flags.hosts));
  } else if (!spec.hosts.empty()) {
    const bool one = spec.hosts.size() == 1 && spec.hosts.front() == Host{.name = spec.hosts.front().name};
    ASSIGN_OR_RETURN(setting->hosts, CountOfHosts(one ? spec.hosts.front().name : "several names"));
  }
  return setting;
}

absl::StatusOr<std::vector<Host>> HostsOf(const HostFlags& flags, const std::vector<std::string>& environment) {
  const bool has_hosts = !flags.hosts.empty() || !flags.host_file.empty();
  if (!flags.on.empty())
    if (const absl::Status engine = CheckEngine(flags, has_hosts); !engine.ok()) return engine;
  if (flags.on == kSlurmEngine) return NodesOfSlurm(environment);
  if (!flags.hosts.empty() && !flags.host_file.empty())
    return absl::InvalidArgumentError("--hosts and --host_file: accepted is one of them");
  if (!flags.host_file.empty()) return ReadHostFile(flags.host_file);
  if (flags.hosts.empty() && (!flags.grace.empty() || !flags.ssh_config.empty()))
    return absl::InvalidArgumentError("--grace and --ssh_config: accepted with --hosts or --host_file only");
  if (flags.hosts.empty()) return std::vector<Host>();
  const absl::StatusOr<std::vector<Host>> hosts = ParseHostList(flags.hosts);
  if (hosts.ok()) return hosts;
  return absl::InvalidArgumentError(absl::StrCat("--hosts: ", std::string(hosts.status().message())));
}

std::map<std::string, std::string> GivenHostFlags(const HostFlags& flags) {
  std::map<std::string, std::string> given = {
      {"on", flags.on},       {"hosts", flags.hosts},           {"host_file", flags.host_file}, {"grace", flags.grace},
      {"ports", flags.ports}, {"ssh_config", flags.ssh_config}, {"hosts_by", flags.hosts_by}};
  std::erase_if(given, [](const auto& flag) { return flag.second.empty(); });
  return given;
}

absl::StatusOr<HostSetting> HostSettingOf(const HostFlags& flags, const HostsSpec& spec, const std::string& folder) {
  ASSIGN_OR_RETURN(HostSetting setting, WhereTasksRun(flags, spec, folder));
  ASSIGN_OR_RETURN(setting.ports, PortsIn(flags));
  if (!setting.ports.has_value()) setting.ports = spec.ports;
  return setting;
}

absl::StatusOr<ProjectFiles> CodeForHosts(const HostFlags& flags, const std::string& folder,
                                          const std::vector<std::string>& left_out) {
  int64_t limit = kUsualCodeLimit;
  if (!flags.code_limit.empty()) {
    const absl::StatusOr<int64_t> given = ParseMemory(flags.code_limit, nullptr);
    if (!given.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("--code_limit '", flags.code_limit, "': accepted is ", kMemoryForms));
    limit = *given;
  }
  ASSIGN_OR_RETURN(ProjectFiles files, ListProject(folder, left_out));
  RETURN_IF_ERROR(CheckCodeSize(files, limit));
  return files;
}

absl::StatusOr<std::optional<PortRange>> PortsIn(const HostFlags& flags) {
  if (flags.ports.empty()) return std::nullopt;
  const absl::StatusOr<PortRange> ports = ParsePortRange(flags.ports);
  if (ports.ok()) return std::optional(*ports);
  return absl::InvalidArgumentError(absl::StrCat("--ports ", std::string(ports.status().message())));
}

absl::StatusOr<HostPlan> HostPlanOf(const HostFlags& flags, std::vector<Host> hosts) {
  HostPlan plan{.hosts = std::move(hosts), .ssh_config = flags.ssh_config};
  if (!flags.grace.empty()) {
    ASSIGN_OR_RETURN(plan.grace, ParseGrace(flags.grace));
  }
  if (!plan.ssh_config.empty() && !std::filesystem::exists(plan.ssh_config))
    return absl::NotFoundError(absl::StrCat("--ssh_config '", plan.ssh_config, "': there is no such file"));
  ASSIGN_OR_RETURN(plan.ports, PortsIn(flags));
  plan.muster = "/proc/self/exe";  // this very build, also if another one takes its place meanwhile
  return plan;
}

}  // namespace muster
