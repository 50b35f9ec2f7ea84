// What a job of Kubernetes is made of, as YAML that `kubectl create` takes and users read: the supervisor's pod, a
// Secret, a headless Service, one pod for each agent, and for some gangs a PodGroup (docs/kubernetes_engine.md). Pure,
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/engines/kubernetes/kubectl/kubectl.h"
#include "muster/launch/engines/kubernetes/yaml/yaml_text.h"

namespace muster {

inline constexpr char kJobLabel[] = "muster/job";
inline constexpr char kPartLabel[] = "muster/part";  // kSupervisorPart or kAgentPart
inline constexpr char kHostLabel[] = "muster/host";
inline constexpr char kAgainLabel[] = "muster/again";  // on a pod in the place of a lost one: how many were before
inline constexpr char kStartTimeoutAnnotation[] = "muster/start-timeout";  // seconds, of the supervisor's pod
inline constexpr char kSupervisorPart[] = "supervisor";
inline constexpr char kAgentPart[] = "agent";
inline constexpr char kMusterContainer[] = "muster";

// Where supervisors listen for agents unless `ports` names others: outside of Linux's range for outgoing connections.
inline constexpr uint16_t kUsualSupervisorPort = 6464;
// Folders of the containers.
inline constexpr char kPodFolder[] = "/muster";           // an emptyDir
inline constexpr char kPodHome[] = "/muster/home";        // MUSTER_HOME of the supervisor
inline constexpr char kSecretFolder[] = "/etc/muster";    // the Secret
inline constexpr char kPodTemplateName[] = "agent.json";  // in the Secret: how to make a lost pod again

// What stands in a manifest for what is known only when it is submitted.
inline constexpr char kOpenUid[] = "00000000-0000-0000-0000-000000000000";  // of the supervisor's pod

struct PodJob {
  JobRequest request;
  KubernetesPlace place;
  std::string suffix;  // random letters and digits, which are the run's id, too
};

// "muster-1-2-8c1f2a3b"
std::string NameOfPodJob(const PodJob& job);
// Returns how long a pod's processes get to end after SIGTERM, which counts as termination grace: what its tasks take,
// and what muster needs itself; at least 30 s. That of the user's pod_template counts as it is.
absl::Duration PodGrace(const JobRequest& request);
// Returns that of the supervisor's pod: when its run has ended, somebody still has to fetch what it has written. That
// of the template is merged into this pod, too.
absl::Duration SupervisorPodGrace(const JobRequest& request);

// Returns the pod of an agent, with the user's pod_template merged in.
OrderedJson AgentPod(const PodJob& job, int index);

// Returns all documents, the supervisor's pod first, with lines of "---" between. The Secret's secret and the
// supervisor's uid are open.
std::string PodJobText(const PodJob& job);

struct OpenPodJob {
  std::string name;        // the job's
  std::string after;       // JobRequest::after
  std::string supervisor;  // the document of its pod
  std::string others;      // the rest
};
// Takes such a text apart. InvalidArgument: it isn't one.
absl::StatusOr<OpenPodJob> ParsePodJob(const std::string& text);
// Fills in what is open.
std::string FilledIn(std::string text, const std::string& secret_hex, const std::string& supervisor_uid);

}  // namespace muster
