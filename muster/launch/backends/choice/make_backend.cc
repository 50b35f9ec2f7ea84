#include "muster/launch/backends/choice/make_backend.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/text/nearest_name.h"
#include "muster/launch/backends/hosts/hosts_backend.h"
#include "muster/launch/backends/local/local_backend.h"
#include "muster/launch/engines/command/command_engine.h"
#include "muster/launch/engines/contact/contact_engine.h"
#include "muster/launch/engines/driver/driver_engine.h"
#include "muster/launch/engines/kubernetes/pod_engine.h"
#include "muster/launch/engines/slurm/slurm_engine.h"
#include "muster/launch/engines/ssh/ssh_way.h"

namespace muster {
namespace {

template <typename Engine>
std::unique_ptr<Backend> Make(const BackendOptions& options, FdLoop& loop, BackendEvents& events) {
  return std::make_unique<Engine>(options, loop, events);
}

std::unique_ptr<Backend> MakeSsh(const BackendOptions& options, FdLoop& loop, BackendEvents& events) {
  ContactOptions contact{.way = std::make_shared<SshWay>(SshSettings{.config = options.plan.ssh_config}),
                         .environment = options.environment,
                         .job = options.run_id,
                         .grace = options.plan.grace,
                         .muster_path = options.plan.muster};
  return std::make_unique<HostsBackend>(
      options, std::make_unique<ContactEngine>(std::move(contact), loop, *options.clock), loop, events);
}

std::unique_ptr<Backend> MakeCommand(const BackendOptions& options, FdLoop& loop, BackendEvents& events) {
  ContactOptions contact{.environment = options.environment,
                         .job = options.run_id,
                         .grace = options.plan.grace,
                         .muster_path = options.plan.muster};
  auto engine = std::make_unique<CommandEngine>(options.plan.command.value_or(CommandHosts()), std::move(contact), loop,
                                                *options.clock);
  return std::make_unique<HostsBackend>(options, std::move(engine), loop, events);
}

std::unique_ptr<Backend> MakeSlurm(const BackendOptions& options, FdLoop& loop, BackendEvents& events) {
  SlurmEngineOptions slurm{.hosts = {},
                           .environment = options.environment,
                           .job = options.run_id,
                           .grace = options.plan.grace,
                           .muster = options.plan.muster,
                           .folder = options.plan.shared_folder,
                           .goes_on = options.plan.supervisor > 1,
                           .in_job = options.plan.in_job,
                           .ports = options.plan.ports};
  for (const Host& host : options.plan.hosts) slurm.hosts.push_back(host.name);
  if (options.note) slurm.note = options.note;
  return std::make_unique<HostsBackend>(options, std::make_unique<SlurmEngine>(std::move(slurm), loop, *options.clock),
                                        loop, events);
}

// Serves the engines whose jobs have a driver: Ray and Spark.
std::unique_ptr<Backend> MakeOfDriver(const BackendOptions& options, FdLoop& loop, BackendEvents& events) {
  DriverEngineOptions driver{.hosts = {},
                             .environment = options.environment,
                             .job = options.run_id,
                             .grace = options.plan.grace,
                             .folder = options.plan.shared_folder,
                             .goes_on = options.plan.supervisor > 1,
                             .ports = options.plan.ports};
  for (const Host& host : options.plan.hosts) driver.hosts.push_back(host.name);
  if (options.note) driver.note = options.note;
  return std::make_unique<HostsBackend>(options, MakeDriverEngine(driver, loop, *options.clock), loop, events);
}

// Without what a pod is told, the engine's start says so.
std::unique_ptr<Backend> MakeKubernetes(const BackendOptions& options, FdLoop& loop, BackendEvents& events) {
  PodEngineOptions pods{.hosts = {},
                        .pod = ReadPodVariables(options.environment).value_or(PodVariables()),
                        .environment = options.environment,
                        .goes_on = options.plan.supervisor > 1};
  for (const Host& host : options.plan.hosts) pods.hosts.push_back(host.name);
  if (options.note) pods.note = options.note;
  BackendOptions in_pods = options;
  in_pods.plan.signalled = pods.pod.ending;
  return std::make_unique<HostsBackend>(in_pods, MakePodEngine(pods, loop, *options.clock), loop, events);
}

constexpr struct {
  const char* name;
  std::unique_ptr<Backend> (*make)(const BackendOptions& options, FdLoop& loop, BackendEvents& events);
} kEngines[] = {
    {kThisMachine, Make<LocalBackend>},  {kSshEngine, MakeSsh},      {kCommandEngine, MakeCommand},
    {kSlurmEngine, MakeSlurm},           {kRayEngine, MakeOfDriver}, {kSparkEngine, MakeOfDriver},
    {kKubernetesEngine, MakeKubernetes},
};

}  // namespace

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  for (const auto& engine : kEngines) names.emplace_back(engine.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name, const BackendOptions& options,
                                                     FdLoop& loop, BackendEvents& events) {
  for (const auto& engine : kEngines)
    if (engine.name == name) return engine.make(options, loop, events);
  const std::string given(name);
  return absl::InvalidArgumentError(absl::StrCat("unknown launch engine '", given, "'",
                                                 NearestHint(given, BackendNames()),
                                                 "; accepted: ", absl::StrJoin(BackendNames(), ", ")));
}

}  // namespace muster
