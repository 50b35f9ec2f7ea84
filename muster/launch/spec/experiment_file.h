// The file that describes an experiment: muster.yml, or riseml.yml unchanged. docs/experiment_file.md has every key
// with its type and default; `muster schema` prints the same as JSON schema, from the same table (schema.h) that checks
// files here. Plain values; functions are stateless and thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/hosts/host_list.h"
#include "muster/launch/hosts/host_setting.h"
#include "muster/launch/task/resources.h"
#include "muster/launch/task/restart_policy.h"

namespace muster {

enum class Framework { kMuster, kTensorflow, kPytorch, kAny };

struct RoleSpec {
  int count = 0;
  Resources resources;  // defaults of train.resources already merged in
  RestartPolicy restart;
  std::string resources_place;  // their place, for messages: "muster.yml:4: train.resources"; empty: nowhere
};

// train.tensorflow.distributed or train.muster.distributed. In the file, `worker: 3` includes the master unless
// `master` is given; here `workers.count` never includes it.
struct DistributedSpec {
  RoleSpec master{.count = 1};
  RoleSpec workers;
  RoleSpec ps;
  RoleSpec evaluator;  // count 0 or 1
};

// train.torchrun: `workers` groups (what torchrun calls nodes) of `processes` each.
struct TorchrunSpec {
  RoleSpec workers{.count = 1};
  int processes = 1;
};

// train.setup: commands that each host runs once for a content.
struct SetupSpec {
  std::vector<std::string> run;    // empty: nothing is to be done
  std::vector<std::string> files;  // below the folder; their contents are the content; empty: all that is in it
};

struct VolumeSpec {
  std::string host;  // absolute path on the machine
  std::string path;  // where tasks see it; by default the same
  bool writable = false;
};

// One or several values: a grid has every combination of the values of its parameters.
struct ParameterSpec {
  std::string name;                 // "learning-rate"
  std::vector<std::string> values;  // as used in commands and environment; at least one
  // A range with real bounds: random search draws from it instead of from `values`, logarithmically if so marked.
  struct Range {
    double min, max, step;
    bool logarithmic = false;
    bool whole = false;  // whole numbers only
  };
  std::optional<Range> range;
};

inline constexpr char kSupervisorHere[] = "here";

// Where the tasks run. What isn't stated is a flag's or a default's.
struct HostsSpec {
  std::string on;           // the engine; empty: not stated
  std::vector<Host> hosts;  // empty: not stated
  std::string host_file;    // as written, below the experiment file's folder unless absolute
  std::map<std::string, std::vector<std::string>> placement;  // as PlacementRequest::explicit_hosts
  std::optional<absl::Duration> grace;
  std::optional<PortRange> ports;
  std::string ssh_config;        // as host_file
  std::string supervisor;        // kSupervisorHere, or a host; empty: not stated
  SlurmSetting slurm;            // of a job of Slurm, if `on` or a flag says so
  RaySetting ray;                // of a job of Ray, likewise
  KubernetesSetting kubernetes;  // of a job of Kubernetes, likewise
  SparkSetting spark;            // of a job of Spark, likewise
  // The commands of `hosts_by`; their number of hosts and their folder are those that a flag or `hosts` says.
  std::optional<CommandSetting> command = std::nullopt;
};

// One value as it stands in the file; of a list of plain values all of them.
struct FileValue {
  std::string path;  // "train.resources.cpus"
  std::string text;  // "2"; of a list "a, b"
  int line = 0;
};

struct ExperimentFile {
  std::string name;               // of the file, for messages: "muster.yml"
  std::vector<FileValue> values;  // all of them, in the file's order
  std::string project;
  HostsSpec hosts;
  Framework framework = Framework::kAny;
  std::string version;        // of the framework, without "-gpu"; empty: any
  std::string version_place;  // for messages: "muster.yml:7: train.tensorflow.version"
  bool gpu_version = false;   // "1.2.1-gpu"
  bool tensorboard = false;   // runs one beside the experiment
  std::optional<DistributedSpec> distributed;
  std::optional<TorchrunSpec> torchrun;
  std::string image;
  std::vector<std::string> install;
  SetupSpec setup;
  std::vector<std::string> run;         // with {{ name }} still in them
  std::vector<std::string> run_places;  // place of each, for messages: "muster.yml:9: train.run[2]"
  Resources resources;                  // of the only task if neither distributed nor torchrun
  std::string resources_place;          // where the file has them, as in RoleSpec
  RestartPolicy restart;                // of the only task
  std::vector<VolumeSpec> volumes;
  std::vector<ParameterSpec> parameters;
  int concurrency = 1;  // runs of a grid at a time
  std::vector<std::pair<std::string, std::string>> env;
  std::string output;                 // root of OUTPUT_DIRs; empty: below MUSTER_HOME
  int64_t log_bytes = 256 << 20;      // most that is kept of one task's log
  std::vector<std::string> warnings;  // lines for the user
};

// Returns InvalidArgument with one line for each mistake in the file: "muster.yml:7: train.resources.mem: …; accepted:
// …". `name` is the file's, for messages.
absl::StatusOr<ExperimentFile> ParseExperimentFile(std::string_view text, const std::string& name);

// Returns the path of the file in `folder`: muster.yml, otherwise riseml.yml. NotFound naming both and `muster init`.
absl::StatusOr<std::string> FindExperimentFile(const std::string& folder);

}  // namespace muster
