// What a job of Kubernetes is asked for that holds an experiment (docs/kubernetes.md). Plain values and pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// The system that starts a job's pods together or not at all.
enum class PodGang { kNone, kKueue, kVolcano, kCoscheduling };

inline constexpr char kUsualKubectl[] = "kubectl";
inline constexpr char kUsualGpuResource[] = "nvidia.com/gpu";

struct KubernetesSetting {
  int nodes = 1;             // pods of agents
  std::string image;         // of all pods; needed
  std::string kubectl;       // a program; empty: kUsualKubectl
  std::string context;       // of kubectl's configuration; empty: its current one
  std::string name_space;    // empty: that of the context
  std::string muster;        // the program in the image; empty: muster, in the image's PATH
  std::string gpu_resource;  // as Kubernetes counts GPUs; empty: kUsualGpuResource
  std::string service_account;
  std::vector<std::string> image_pull_secrets;
  std::map<std::string, std::string> node_selector, annotations, labels;
  std::string tolerations;                                  // a list in JSON, as a pod has it; empty: none
  std::vector<std::pair<std::string, std::string>> claims;  // name of a PersistentVolumeClaim, and where tasks see it
  PodGang gang = PodGang::kNone;
  std::string queue;      // of kueue, needed, or volcano
  std::string scheduler;  // empty: that of the gang, or the cluster's
  absl::Duration start_timeout = absl::Minutes(10);
  std::optional<int> start_tries;  // how often the job is submitted until all pods start; nullopt: without a limit
  absl::Duration start_pause = absl::Seconds(30);  // before the second time; before each further one twice as long
  absl::Duration keep = absl::Hours(24);           // how long the supervisor's pod waits for its state to be fetched
  std::optional<int64_t> shm_bytes;                // of /dev/shm; nullopt: half of the pod's memory
  std::string pod_template;                        // an object in JSON that is merged into each pod; empty: none

  bool operator==(const KubernetesSetting&) const = default;
};

std::string PodGangText(PodGang gang);

// Takes one setting, as the experiment file and a flag give it. Lists and maps come as JSON; a key of a map also as
// MAP.KEY, a list of plain values also as "A,B". nullopt: back to what it is unless stated. InvalidArgument says what
// is accepted.
[[nodiscard]] absl::Status TakeKubernetesSetting(KubernetesSetting& kubernetes, const std::string& name,
                                                 const std::optional<std::string>& value);

// InvalidArgument names what must be stated and isn't, or doesn't go together.
[[nodiscard]] absl::Status CheckKubernetesSetting(const KubernetesSetting& kubernetes);

}  // namespace muster
