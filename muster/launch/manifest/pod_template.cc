#include "muster/launch/manifest/pod_template.h"

#include "absl/strings/str_cat.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/engines/kubernetes/yaml/quantity.h"
#include "muster/launch/engines/kubernetes/yaml/yaml_text.h"
#include "muster/launch/manifest/manifest_names.h"
#include "muster/launch/manifest/task_variables.h"

namespace muster {
namespace {

constexpr char kShmPath[] = "/dev/shm";
// A sidecar would keep a pod running after its task has ended, and holds up its first connections.
constexpr char kIstioInject[] = "sidecar.istio.io/inject";
constexpr char kLinkerdInject[] = "linkerd.io/inject";

OrderedJson JsonOf(const std::map<std::string, std::string>& texts) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [key, text] : texts) json[key] = text;
  return json;
}

OrderedJson PodAnnotations(const ManifestRequest& request) {
  OrderedJson annotations = {{kIstioInject, "false"}, {kLinkerdInject, "disabled"}};
  annotations.update(JsonOf(request.annotations));
  return annotations;
}

// Memory and GPUs are had or not, so what is asked for is also the limit.
OrderedJson ContainerResources(const ManifestRequest& request, const Resources& resources) {
  OrderedJson amounts = OrderedJson::object();
  if (resources.cpus.has_value()) amounts["cpu"] = CpuQuantity(*resources.cpus);
  if (resources.mem_bytes.has_value()) amounts["memory"] = MemoryQuantity(*resources.mem_bytes);
  if (resources.gpus.value_or(0) > 0) amounts[request.gpu_resource] = absl::StrCat(*resources.gpus);
  if (amounts.empty()) return amounts;
  return {{"requests", amounts}, {"limits", amounts}};
}

std::string ClaimVolume(size_t number) { return absl::StrCat("claim-", number + 1); }

OrderedJson VolumeMounts(const ManifestRequest& request) {
  OrderedJson mounts = OrderedJson::array();
  mounts.push_back({{"name", "shm"}, {"mountPath", kShmPath}});
  for (size_t i = 0; i < request.claims.size(); ++i) {
    OrderedJson mount = {{"name", ClaimVolume(i)}, {"mountPath", request.claims[i].path}};
    if (request.claims[i].read_only) mount["readOnly"] = true;
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

OrderedJson Volumes(const ManifestRequest& request, const ManifestRole& role) {
  OrderedJson shm = {{"medium", "Memory"}};
  if (const std::optional<int64_t> bytes = ShmBytes(request, role)) shm["sizeLimit"] = MemoryQuantity(*bytes);
  OrderedJson volumes = OrderedJson::array();
  volumes.push_back({{"name", "shm"}, {"emptyDir", std::move(shm)}});
  for (size_t i = 0; i < request.claims.size(); ++i) {
    OrderedJson claim = {{"claimName", request.claims[i].name}};
    if (request.claims[i].read_only) claim["readOnly"] = true;
    volumes.push_back({{"name", ClaimVolume(i)}, {"persistentVolumeClaim", std::move(claim)}});
  }
  return volumes;
}

OrderedJson Tolerations(const ManifestRequest& request) {
  OrderedJson tolerations = OrderedJson::array();
  for (const ManifestToleration& toleration : request.tolerations) {
    OrderedJson one = {{"key", toleration.key}, {"operator", toleration.value.has_value() ? "Equal" : "Exists"}};
    if (toleration.value.has_value()) one["value"] = *toleration.value;
    if (!toleration.effect.empty()) one["effect"] = toleration.effect;
    tolerations.push_back(std::move(one));
  }
  return tolerations;
}

OrderedJson TaskContainer(const ManifestRequest& request, const ManifestRole& role) {
  OrderedJson command = OrderedJson::array();
  for (const std::string& word : role.command) command.push_back(KeptFromExpansion(word));
  OrderedJson container = {
      {"name", ContainerName(request.form)}, {"image", request.image}, {"command", std::move(command)}};
  if (!request.work_folder.empty()) container["workingDir"] = request.work_folder;
  container["env"] = TaskVariables(request, role);
  const bool is_tf_job = request.form == ManifestForm::kTfJob;
  if (IsReached(role) || is_tf_job)
    container["ports"] = OrderedJson::array(
        {{{"name", is_tf_job ? "tfjob-port" : ContainerName(request.form)}, {"containerPort", kManifestPort}}});
  if (OrderedJson resources = ContainerResources(request, role.resources); !resources.empty())
    container["resources"] = std::move(resources);
  container["volumeMounts"] = VolumeMounts(request);
  return container;
}

void AddPlace(const ManifestRequest& request, OrderedJson& spec) {
  if (!request.node_selector.empty()) spec["nodeSelector"] = JsonOf(request.node_selector);
  if (!request.tolerations.empty()) spec["tolerations"] = Tolerations(request);
  if (!request.user.has_value()) return;
  spec["securityContext"] = {{"runAsNonRoot", request.user->user != 0},
                             {"runAsUser", request.user->user},
                             {"runAsGroup", request.user->group},
                             {"fsGroup", request.user->group}};
}

}  // namespace

std::string ContainerName(ManifestForm form) { return form == ManifestForm::kTfJob ? "tensorflow" : "task"; }

nlohmann::ordered_json ManifestLabels(const ManifestRequest& request, const std::string& role) {
  OrderedJson labels = {{"app.kubernetes.io/name", "muster"}, {"app.kubernetes.io/instance", request.name}};
  if (!role.empty()) {
    labels["app.kubernetes.io/component"] = role;
    labels[kIstioInject] = "false";
  }
  labels.update(JsonOf(request.labels));
  return labels;
}

std::optional<int64_t> ShmBytes(const ManifestRequest& request, const ManifestRole& role) {
  if (request.shm_bytes.has_value() || !role.resources.mem_bytes.has_value()) return request.shm_bytes;
  return *role.resources.mem_bytes / 2;
}

nlohmann::ordered_json PodTemplate(const ManifestRequest& request, const ManifestRole& role) {
  OrderedJson spec = OrderedJson::object();
  // A TFJob's operator writes what its restartPolicy asks for.
  if (request.form != ManifestForm::kTfJob) spec["restartPolicy"] = "Never";
  if (request.form == ManifestForm::kJob) spec["subdomain"] = request.name;
  if (!request.service_account.empty()) spec["serviceAccountName"] = request.service_account;
  spec["automountServiceAccountToken"] = !request.service_account.empty();
  spec["enableServiceLinks"] = false;
  // Another process reaps what tasks leave behind, and SIGTERM ends also a program that has no handler for it, which
  // the first process of a container must have.
  spec["shareProcessNamespace"] = true;
  spec["terminationGracePeriodSeconds"] = absl::ToInt64Seconds(absl::Ceil(request.stop_grace, absl::Seconds(1)));
  AddPlace(request, spec);
  if (!request.pull_secret.empty()) spec["imagePullSecrets"] = OrderedJson::array({{{"name", request.pull_secret}}});
  spec["containers"] = OrderedJson::array({TaskContainer(request, role)});
  spec["volumes"] = Volumes(request, role);
  return {{"metadata", {{"labels", ManifestLabels(request, role.job)}, {"annotations", PodAnnotations(request)}}},
          {"spec", std::move(spec)}};
}

}  // namespace muster
