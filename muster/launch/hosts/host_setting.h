// On which hosts a run's tasks run, as flags and the experiment file have decided at its start. Plain values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/net/port_range.h"
#include "muster/launch/hosts/command_setting.h"
#include "muster/launch/hosts/host_list.h"
#include "muster/launch/hosts/kubernetes_setting.h"
#include "muster/launch/hosts/ray_setting.h"
#include "muster/launch/hosts/slurm_setting.h"
#include "muster/launch/hosts/spark_setting.h"

namespace muster {

// Bounds of `grace`, how long tasks on hosts go on without hearing from their supervisor, and what it is if not stated.
inline constexpr absl::Duration kLeastGrace = absl::Seconds(10);
inline constexpr absl::Duration kMostGrace = absl::Hours(24);
inline constexpr absl::Duration kUsualGrace = absl::Seconds(30);

// The engine of jobs of Slurm.
inline constexpr char kSlurmEngine[] = "slurm";
// That of jobs of Ray.
inline constexpr char kRayEngine[] = "ray";
// That of jobs of Kubernetes.
inline constexpr char kKubernetesEngine[] = "kubernetes";
// That of jobs of Spark.
inline constexpr char kSparkEngine[] = "spark";

struct HostSetting {
  std::vector<Host> hosts;            // none: this machine, the nodes of the job, or those that `command` gets
  std::optional<SlurmSetting> slurm;  // a job of Slurm is to have the tasks
  std::optional<RaySetting> ray = std::nullopt;                // one of Ray
  std::optional<KubernetesSetting> kubernetes = std::nullopt;  // one of Kubernetes
  std::optional<SparkSetting> spark = std::nullopt;            // one of Spark
  std::optional<CommandSetting> command = std::nullopt;        // these commands get the hosts
  std::map<std::string, std::vector<std::string>> placement;   // as PlacementRequest::explicit_hosts
  absl::Duration grace = kUsualGrace;
  std::string ssh_config;          // a file for `ssh -F`, absolute; empty: the user's own
  std::optional<PortRange> ports;  // the only numbers for ports of tasks, on this machine, too

  // Returns the engine of whose job the experiment is to be; "": of none.
  std::string job_engine() const {
    if (kubernetes.has_value()) return kKubernetesEngine;
    if (spark.has_value()) return kSparkEngine;
    return slurm.has_value() ? kSlurmEngine : ray.has_value() ? kRayEngine : "";
  }
  // Whether the tasks run on other machines than the one that is asked to start them.
  bool is_elsewhere() const { return !hosts.empty() || command.has_value() || !job_engine().empty(); }

  bool operator==(const HostSetting&) const = default;
};

}  // namespace muster
