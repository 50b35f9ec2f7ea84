#include "muster/launch/manifest/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/engines/kubernetes/yaml/yaml_text.h"
#include "muster/launch/manifest/manifest_check.h"
#include "muster/launch/manifest/manifest_names.h"
#include "muster/launch/manifest/pod_template.h"

namespace muster {
namespace {

// The exit code of wrong configuration: another start would end the same way.
constexpr int kUserError = 2;
// The exit codes after which a task is started again, as IsRetryable has them.
const std::vector<int>& RetriedCodes() {
  static const std::vector<int> codes = {130, 137, 138, 143};
  return codes;
}

OrderedJson ObjectMetadata(const ManifestRequest& request, const std::string& name) {
  OrderedJson metadata = {{"name", name}};
  if (!request.name_space.empty()) metadata["namespace"] = request.name_space;
  metadata["labels"] = ManifestLabels(request, "");
  return metadata;
}

OrderedJson Secret(const ManifestRequest& request) {
  OrderedJson data = OrderedJson::object();
  data[request.token_key] = request.token;
  // Pods that begin later must get the token that the others have.
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", ObjectMetadata(request, absl::StrCat(request.name, "-token"))},
          {"type", "Opaque"},
          {"immutable", true},
          {"stringData", std::move(data)}};
}

// The names of pods resolve before they are ready, as ps and workers wait for each other.
OrderedJson Service(const ManifestRequest& request) {
  OrderedJson spec = {
      {"clusterIP", "None"},
      {"publishNotReadyAddresses", true},
      {"selector", {{"app.kubernetes.io/name", "muster"}, {"app.kubernetes.io/instance", request.name}}}};
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", ObjectMetadata(request, request.name)},
          {"spec", std::move(spec)}};
}

// An eviction or a drained node is no failure of the task.
OrderedJson PodFailurePolicy(const ManifestRequest& request, RestartWhen when) {
  OrderedJson ignored = {{"action", "Ignore"}};
  ignored["onPodConditions"] = OrderedJson::array();
  ignored["onPodConditions"].push_back({{"type", "DisruptionTarget"}, {"status", "True"}});
  OrderedJson codes = {{"containerName", ContainerName(request.form)}};
  codes["operator"] = when == RestartWhen::kAlways ? "In" : "NotIn";
  codes["values"] = when == RestartWhen::kAlways ? std::vector<int>{kUserError} : RetriedCodes();
  OrderedJson final_failures = {{"action", "FailJob"}, {"onExitCodes", std::move(codes)}};
  OrderedJson rules = OrderedJson::array();
  rules.push_back(std::move(ignored));
  rules.push_back(std::move(final_failures));
  OrderedJson policy = OrderedJson::object();
  policy["rules"] = std::move(rules);
  return policy;
}

// Finished Jobs and failed pods stay, to be read: there is no ttlSecondsAfterFinished.
OrderedJson JobSpec(const ManifestRequest& request, const ManifestRole& role) {
  OrderedJson spec = {{"completionMode", "Indexed"},
                      {"completions", role.count},
                      {"parallelism", role.count},
                      {"backoffLimit", RestartsOf(role)}};
  if (role.restart.when != RestartWhen::kNever) spec["podFailurePolicy"] = PodFailurePolicy(request, role.restart.when);
  spec["template"] = PodTemplate(request, role);
  return spec;
}

bool IsAwaited(const ManifestRole& role) { return role.job != kPsJob && role.job != kEvaluatorJob; }

OrderedJson JobSet(const ManifestRequest& request) {
  OrderedJson awaited = OrderedJson::array();
  OrderedJson jobs = OrderedJson::array();
  for (const ManifestRole& role : request.roles) {
    if (IsAwaited(role)) awaited.push_back(role.job);
    OrderedJson job = {{"name", role.job}, {"replicas", 1}};
    job["template"]["spec"] = JobSpec(request, role);
    jobs.push_back(std::move(job));
  }
  OrderedJson spec = OrderedJson::object();
  spec["network"] = {{"enableDNSHostnames", true}, {"subdomain", request.name}, {"publishNotReadyAddresses", true}};
  spec["successPolicy"] = {{"operator", "All"}, {"targetReplicatedJobs", std::move(awaited)}};
  spec["failurePolicy"]["maxRestarts"] = 0;
  spec["replicatedJobs"] = std::move(jobs);
  return {{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
          {"kind", "JobSet"},
          {"metadata", ObjectMetadata(request, request.name)},
          {"spec", std::move(spec)}};
}

OrderedJson PlainJob(const ManifestRequest& request, const ManifestRole& role) {
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", ObjectMetadata(request, JobNameOf(request, role))},
          {"spec", JobSpec(request, role)}};
}

std::string TfJobReplicas(const std::string& job) {
  if (job == kPsJob) return "PS";
  if (job == kChiefJob) return "Chief";
  if (job == kMasterJob) return "Master";
  return job == kEvaluatorJob ? "Evaluator" : "Worker";
}

std::string TfJobRestart(RestartWhen when) {
  if (when == RestartWhen::kNever) return "Never";
  return when == RestartWhen::kAlways ? "OnFailure" : "ExitCode";
}

OrderedJson TfJob(const ManifestRequest& request) {
  OrderedJson replicas = OrderedJson::object();
  int restarts = 0;
  bool has_chief = false;
  for (const ManifestRole& role : request.roles) {
    replicas[TfJobReplicas(role.job)] = {{"replicas", role.count},
                                         {"restartPolicy", TfJobRestart(role.restart.when)},
                                         {"template", PodTemplate(request, role)}};
    restarts += RestartsOf(role);
    has_chief = has_chief || role.job == kChiefJob || role.job == kMasterJob;
  }
  OrderedJson spec = OrderedJson::object();
  // Ends what still runs, such as the ps, and keeps what has failed.
  spec["runPolicy"] = {{"cleanPodPolicy", "Running"}, {"backoffLimit", restarts}};
  if (!has_chief) spec["successPolicy"] = "AllWorkers";
  spec["tfReplicaSpecs"] = std::move(replicas);
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "TFJob"},
          {"metadata", ObjectMetadata(request, request.name)},
          {"spec", std::move(spec)}};
}

// Returns the comment at the top of the file.
std::string NeedsText(const ManifestRequest& request) {
  if (request.form == ManifestForm::kTfJob)
    return "# Needs Kubeflow's Training Operator (TFJob of kubeflow.org/v1, version 1.9 or an earlier 1.x) and a "
           "Kubernetes that it supports.\n";
  const bool has_policy = std::any_of(request.roles.begin(), request.roles.end(), [](const ManifestRole& role) {
    return role.restart.when != RestartWhen::kNever;
  });
  const std::string set =
      request.form == ManifestForm::kJobSet ? " and JobSet 0.6 (for network.publishNotReadyAddresses)" : "";
  if (!has_policy) return absl::StrCat("# Needs Kubernetes 1.24 (where indexed Jobs are stable)", set, ".\n");
  return absl::StrCat("# Needs Kubernetes 1.26 (where podFailurePolicy is on, as beta; it is stable in 1.31)", set,
                      ".\n");
}

}  // namespace

int RestartsOf(const ManifestRole& role) {
  constexpr int64_t kMostRestarts = 1'000'000;
  if (role.restart.when == RestartWhen::kNever) return 0;
  return static_cast<int>(std::min(kMostRestarts, int64_t{role.restart.limit} * role.count));
}

absl::StatusOr<std::string> ManifestText(const ManifestRequest& request) {
  RETURN_IF_ERROR(CheckManifest(request));
  std::vector<OrderedJson> objects;
  if (request.token_secret.empty()) objects.push_back(Secret(request));
  if (request.form == ManifestForm::kJob) objects.push_back(Service(request));
  if (request.form == ManifestForm::kJobSet) objects.push_back(JobSet(request));
  if (request.form == ManifestForm::kTfJob) objects.push_back(TfJob(request));
  for (const ManifestRole& role : request.roles)
    if (request.form == ManifestForm::kJob) objects.push_back(PlainJob(request, role));
  return absl::StrCat(NeedsText(request), absl::StrJoin(objects, "---\n", [](std::string* out, const OrderedJson& one) {
                        out->append(YamlText(one));
                      }));
}

}  // namespace muster
