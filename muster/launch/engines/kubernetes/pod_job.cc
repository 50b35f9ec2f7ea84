#include "muster/launch/engines/kubernetes/pod_job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/agent/rendezvous.h"
#include "muster/launch/engines/kubernetes/gang.h"
#include "muster/launch/engines/kubernetes/pod_program.h"
#include "muster/launch/engines/kubernetes/pod_variables.h"
#include "muster/launch/engines/kubernetes/yaml/overlay.h"
#include "muster/launch/engines/kubernetes/yaml/quantity.h"
#include "muster/launch/hosts/pod_template_check.h"

namespace muster {
namespace {

constexpr char kBetween[] = "---\n";
constexpr char kNameLine[] = "\n# job: ";
constexpr char kAfterLine[] = "\n# after: ";
// What an agent and its waiting process need themselves, which counts as the pod's.
constexpr int64_t kOwnBytesOfPod = 192 << 20;
constexpr absl::Duration kLeastPodGrace = absl::Seconds(30);
// A collector that nobody waits for looks every 5 s, or after 30 s when it got no answer before.
constexpr absl::Duration kFetchGrace = absl::Seconds(30);
constexpr absl::Duration kReserveOfPod = absl::Seconds(5);  // of its grace, for muster itself after the tasks

KubernetesSetting SettingOf(const JobRequest& request) {
  return request.setting.kubernetes.value_or(KubernetesSetting());
}

std::string Or(const std::string& stated, const char* usual) { return stated.empty() ? usual : stated; }

uint16_t PortOf(const JobRequest& request) {
  return request.setting.ports.has_value() ? request.setting.ports->first : kUsualSupervisorPort;
}

PodVariables VariablesOf(const PodJob& job) {
  const KubernetesSetting setting = SettingOf(job.request);
  return {.job = NameOfPodJob(job),
          // What else is in it are files of the machine that submits the job.
          .at = KubernetesPlace{.context = job.place.context, .name_space = job.place.name_space}.text(),
          .run = job.suffix,
          .pods = setting.nodes,
          .port = PortOf(job.request),
          .start_timeout = setting.start_timeout,
          .ending = PodGrace(job.request) - kReserveOfPod,
          .may_ask_api = !setting.service_account.empty()};
}

// Sidecars would keep the pods from ending, and come between the first connections. An autoscaler must not take a node
// away because its pods could run elsewhere.
OrderedJson AnnotationsOf(const PodJob& job) {
  return {{"muster/project", job.request.project},
          {"sidecar.istio.io/inject", "false"},
          {"linkerd.io/inject", "disabled"},
          {"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"},
          {"karpenter.sh/do-not-disrupt", "true"}};
}

OrderedJson LabelsOf(const PodJob& job, const std::string& part) {
  OrderedJson labels = {{"app.kubernetes.io/name", "muster"},
                        {"muster/experiment", job.request.experiment},
                        {kJobLabel, NameOfPodJob(job)}};
  if (!part.empty()) labels[kPartLabel] = part;
  return labels;
}

OrderedJson OwnersOf(const PodJob& job) {
  return OrderedJson::array({{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", NameOfPodJob(job)}, {"uid", kOpenUid}}});
}

OrderedJson ContainerOf(const PodJob& job, const std::string& script) {
  OrderedJson container = {
      {"name", kMusterContainer},
      {"image", SettingOf(job.request).image},
      {"command", OrderedJson::array({"sh", "-c", script})},
      {"env", OrderedJson::array()},
      {"resources", OrderedJson::object()},
      {"securityContext", {{"allowPrivilegeEscalation", false}}},
      {"volumeMounts", OrderedJson::array({{{"name", "muster"}, {"mountPath", kPodFolder}},
                                           {{"name", "secret"}, {"mountPath", kSecretFolder}, {"readOnly", true}}})}};
  return container;
}

// What both kinds of pods are, but for their containers and what the user wants of them.
OrderedJson PodOf(const PodJob& job, const std::string& name, const std::string& part, const std::string& host) {
  const KubernetesSetting setting = SettingOf(job.request);
  const absl::Duration grace = part == kSupervisorPart ? SupervisorPodGrace(job.request) : PodGrace(job.request);
  OrderedJson labels = LabelsOf(job, part);
  labels[kHostLabel] = host;
  labels["sidecar.istio.io/inject"] = "false";
  OrderedJson spec = {{"restartPolicy", "Never"},
                      {"hostname", host},
                      {"subdomain", NameOfPodJob(job)},
                      {"terminationGracePeriodSeconds", absl::ToInt64Seconds(grace)},
                      {"enableServiceLinks", false},
                      {"automountServiceAccountToken", part == kSupervisorPart && !setting.service_account.empty()},
                      {"securityContext", {{"seccompProfile", {{"type", "RuntimeDefault"}}}}}};
  if (!setting.service_account.empty()) spec["serviceAccountName"] = setting.service_account;
  if (!setting.scheduler.empty()) spec["schedulerName"] = setting.scheduler;
  for (const std::string& secret : setting.image_pull_secrets) spec["imagePullSecrets"].push_back({{"name", secret}});
  for (const auto& [key, value] : setting.node_selector) spec["nodeSelector"][key] = value;
  if (!setting.tolerations.empty())
    spec["tolerations"] = OrderedJson::parse(setting.tolerations, nullptr, /*allow_exceptions=*/false);
  spec["volumes"] = OrderedJson::array({{{"name", "muster"}, {"emptyDir", OrderedJson::object()}},
                                        {{"name", "secret"}, {"secret", {{"secretName", NameOfPodJob(job)}}}}});
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"labels", labels}, {"annotations", AnnotationsOf(job)}}},
          {"spec", spec}};
}

// The user's wishes come last, and win.
void ApplyWishes(const PodJob& job, OrderedJson& pod) {
  const KubernetesSetting setting = SettingOf(job.request);
  AddToGang({.gang = setting.gang, .name = NameOfPodJob(job), .pods = setting.nodes + 1, .queue = setting.queue}, pod);
  for (const auto& [key, value] : setting.labels) pod["metadata"]["labels"][key] = value;
  for (const auto& [key, value] : setting.annotations) pod["metadata"]["annotations"][key] = value;
  if (setting.pod_template.empty()) return;
  MergeOverlay(pod, OrderedJson::parse(setting.pod_template, nullptr, /*allow_exceptions=*/false));
}

// Requests are the limits, which gives the pod the class Guaranteed: it is evicted last.
void AddResources(const PodJob& job, OrderedJson& container) {
  const HostNeeds& needs = job.request.needs;
  OrderedJson amounts = OrderedJson::object();
  if (needs.cpus.has_value()) amounts["cpu"] = CpuQuantity(*needs.cpus);
  if (needs.mem_bytes.has_value()) amounts["memory"] = MemoryQuantity(*needs.mem_bytes + kOwnBytesOfPod);
  if (needs.gpus > 0) amounts[Or(SettingOf(job.request).gpu_resource, kUsualGpuResource)] = absl::StrCat(needs.gpus);
  container["resources"] = {{"requests", amounts}, {"limits", amounts}};
}

void AddShm(const PodJob& job, OrderedJson& spec, OrderedJson& container) {
  const std::optional<int64_t> stated = SettingOf(job.request).shm_bytes;
  if (stated == 0) return;
  OrderedJson empty_dir = {{"medium", "Memory"}};
  const std::optional<int64_t>& memory = job.request.needs.mem_bytes;
  if (stated.has_value() || memory.has_value())
    empty_dir["sizeLimit"] = MemoryQuantity(stated.value_or(memory.value_or(0) / 2));
  spec["volumes"].push_back({{"name", "shm"}, {"emptyDir", empty_dir}});
  container["volumeMounts"].push_back({{"name", "shm"}, {"mountPath", "/dev/shm"}});
}

void AddClaims(const PodJob& job, OrderedJson& spec, OrderedJson& container) {
  int number = 0;
  for (const auto& [claim, path] : SettingOf(job.request).claims) {
    const std::string volume = absl::StrCat("claim-", ++number);
    spec["volumes"].push_back({{"name", volume}, {"persistentVolumeClaim", {{"claimName", claim}}}});
    container["volumeMounts"].push_back({{"name", volume}, {"mountPath", path}});
  }
}

OrderedJson SupervisorPod(const PodJob& job) {
  const JobRequest& request = job.request;
  const KubernetesSetting setting = SettingOf(request);
  OrderedJson pod = PodOf(job, NameOfPodJob(job), kSupervisorPart, kSupervisorPart);
  OrderedJson container =
      ContainerOf(job, SupervisorProgram({.muster = Or(setting.muster, "muster"),
                                          .experiment = request.experiment,
                                          .over_file = InPodHome(request.over_file, request.home),
                                          .output_file = InPodHome(request.output_file, request.home),
                                          .await = setting.start_timeout,
                                          .keep = setting.keep,
                                          .grace = SupervisorPodGrace(request)}));
  container["env"].push_back({{"name", "MUSTER_HOME"}, {"value", kPodHome}});
  for (const auto& [name, value] : VariablesOf(job).List())
    container["env"].push_back({{"name", name}, {"value", value}});
  container["resources"] = {{"requests", {{"cpu", "100m"}, {"memory", "256Mi"}}}, {"limits", {{"memory", "1Gi"}}}};
  pod["spec"]["containers"] = OrderedJson::array({container});
  // A gang has a queue, which takes as long as it takes.
  if (setting.gang == PodGang::kNone)
    pod["metadata"]["annotations"][kStartTimeoutAnnotation] =
        absl::StrCat(absl::ToInt64Seconds(absl::Ceil(setting.start_timeout, absl::Seconds(1))));
  ApplyWishes(job, pod);
  return pod;
}

OrderedJson SecretOf(const PodJob& job) {
  const std::string name = NameOfPodJob(job);
  const Rendezvous meeting{.addresses = {absl::StrCat(kSupervisorPart, ".", name, ":", PortOf(job.request))},
                           .secret = std::string(kRendezvousSecretBytes, '\0')};
  OrderedJson secret = {
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata", {{"name", name}, {"labels", LabelsOf(job, "")}, {"ownerReferences", OwnersOf(job)}}},
      {"type", "Opaque"},
      {"stringData", {{"rendezvous", RendezvousText(meeting)}}}};
  // Agents' pods differ by their host's name alone.
  if (!SettingOf(job.request).service_account.empty()) secret["stringData"][kPodTemplateName] = AgentPod(job, 0).dump();
  return secret;
}

OrderedJson ServiceOf(const PodJob& job) {
  const std::string name = NameOfPodJob(job);
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", name}, {"labels", LabelsOf(job, "")}, {"ownerReferences", OwnersOf(job)}}},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", {{kJobLabel, name}}},
            {"ports", OrderedJson::array({{{"name", "agents"}, {"port", PortOf(job.request)}}})}}}};
}

}  // namespace

std::string NameOfPodJob(const PodJob& job) {
  return absl::StrCat("muster-", absl::StrReplaceAll(job.request.experiment, {{".", "-"}}), "-", job.suffix);
}

absl::Duration PodGrace(const JobRequest& request) {
  return GraceOfPodTemplate(SettingOf(request).pod_template)
      .value_or(std::max(kLeastPodGrace, absl::Ceil(request.notice, absl::Seconds(1))));
}

absl::Duration SupervisorPodGrace(const JobRequest& request) {
  return GraceOfPodTemplate(SettingOf(request).pod_template).value_or(PodGrace(request) + kFetchGrace);
}

OrderedJson AgentPod(const PodJob& job, int index) {
  const KubernetesSetting setting = SettingOf(job.request);
  const std::string host = HostOfPod(index);
  OrderedJson pod = PodOf(job, absl::StrCat(NameOfPodJob(job), "-", host), kAgentPart, host);
  pod["metadata"]["ownerReferences"] = OwnersOf(job);
  OrderedJson container = ContainerOf(job, AgentProgramOfPod({.muster = Or(setting.muster, "muster"),
                                                              .run = job.suffix,
                                                              .grace = job.request.setting.grace,
                                                              // The supervisor's pod may take one to start, and
                                                              // waits for another one until its experiment comes.
                                                              .first = 2 * setting.start_timeout,
                                                              .ending = VariablesOf(job).ending}));
  container["env"].push_back(
      {{"name", kHostVariableOfPod},
       {"valueFrom", {{"fieldRef", {{"fieldPath", absl::StrCat("metadata.labels['", kHostLabel, "']")}}}}}});
  AddResources(job, container);
  AddShm(job, pod["spec"], container);
  AddClaims(job, pod["spec"], container);
  pod["spec"]["containers"] = OrderedJson::array({container});
  ApplyWishes(job, pod);
  return pod;
}

std::string PodJobText(const PodJob& job) {
  const KubernetesSetting setting = SettingOf(job.request);
  std::vector<OrderedJson> documents = {SecretOf(job), ServiceOf(job)};
  OrderedJson group = PodGroupOf({.gang = setting.gang,
                                  .name = NameOfPodJob(job),
                                  .pods = setting.nodes + 1,
                                  .queue = setting.queue,
                                  .start_timeout = setting.start_timeout});
  if (!group.empty()) {
    group["metadata"]["labels"] = LabelsOf(job, "");
    group["metadata"]["ownerReferences"] = OwnersOf(job);
    documents.push_back(std::move(group));
  }
  for (int i = 0; i < setting.nodes; ++i) documents.push_back(AgentPod(job, i));
  std::string text = absl::StrCat("# Experiment ", job.request.experiment, " of project ", OneLine(job.request.project),
                                  ", as muster train gives it to Kubernetes. The secret and the supervisor's uid are\n"
                                  "# filled in when it is submitted.",
                                  kNameLine, NameOfPodJob(job), job.request.after.empty() ? "" : kAfterLine,
                                  job.request.after, "\n", YamlText(SupervisorPod(job)));
  for (const OrderedJson& document : documents) absl::StrAppend(&text, kBetween, YamlText(document));
  return text;
}

absl::StatusOr<OpenPodJob> ParsePodJob(const std::string& text) {
  const size_t name = text.find(kNameLine);
  const size_t between = text.find(absl::StrCat("\n", kBetween));
  if (name == std::string::npos || between == std::string::npos || name > between)
    return absl::InvalidArgumentError("the job's script isn't a manifest that muster train has written");
  const auto rest_of_line = [&text](size_t begin) { return text.substr(begin, text.find('\n', begin) - begin); };
  const size_t after = text.substr(0, between).find(kAfterLine);
  return OpenPodJob{.name = rest_of_line(name + sizeof kNameLine - 1),
                    .after = after == std::string::npos ? "" : rest_of_line(after + sizeof kAfterLine - 1),
                    .supervisor = text.substr(0, between + 1),
                    .others = text.substr(between + 1 + sizeof kBetween - 1)};
}

std::string FilledIn(std::string text, const std::string& secret_hex, const std::string& supervisor_uid) {
  const std::string open_secret(2 * kRendezvousSecretBytes, '0');
  return absl::StrReplaceAll(text, {{open_secret, secret_hex}, {kOpenUid, supervisor_uid}});
}

}  // namespace muster
