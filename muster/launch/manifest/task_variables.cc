#include "muster/launch/manifest/task_variables.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/check.h"
#include "muster/cluster/cluster_spec.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/engines/kubernetes/yaml/yaml_text.h"
#include "muster/launch/foreground/cluster_plan.h"
#include "muster/launch/manifest/manifest_names.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

// Where the controller of Jobs writes a pod's index, before it starts.
constexpr char kIndexPath[] = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
constexpr char kIndexVariable[] = "MUSTER_TASK_INDEX";
// How long a task waits for the ps at its start: pods begin minutes apart where an image must be pulled or a node
// comes.
constexpr char kPodJoinTimeout[] = "1800";
// How long a ps answers after the end, so that a worker whose pod is replaced then learns of it: until it is ended by
// the success policy, or, where there is none, for a minute.
constexpr char kLingerUntilEnded[] = "600";
constexpr char kLingerOfJob[] = "60";

// Returns the index as a part of a variable's value.
std::string IndexText(const ManifestRole& role) {
  return role.count == 1 ? "0" : absl::StrCat("$(", kIndexVariable, ")");
}

std::string TfConfigOfRole(const ManifestRequest& request, const ManifestRole& role) {
  ClusterSpec cluster;
  for (const ManifestRole& other : request.roles)
    for (int i = 0; IsReached(other) && i < other.count; ++i)
      MUSTER_CHECK(cluster.AddTask({other.job, i}, ManifestAddress(request, other, i)).ok());
  // "cloud" makes a master the chief, for TensorFlow 1.
  nlohmann::json rest = {{"environment", "cloud"}, {"task", {{"type", role.job}, {"index", kIndexVariable}}}};
  if (!request.model_dir.empty()) rest["model_dir"] = request.model_dir;
  // The index is a number, which JSON can't leave open.
  return absl::StrReplaceAll(KeptFromExpansion(TfConfigText(cluster.ToJson(), rest)),
                             {{absl::StrCat("\"", kIndexVariable, "\""), IndexText(role)}});
}

bool NeedsIndex(const ManifestRequest& request, const ManifestRole& role) {
  return request.form != ManifestForm::kTfJob && request.naming != TaskNaming::kAlone && role.count > 1;
}

bool HasVariable(const ManifestRole& role, absl::string_view name) {
  return std::any_of(role.environment.begin(), role.environment.end(),
                     [name](const auto& variable) { return variable.first == name; });
}

OrderedJson TokenVariable(const ManifestRequest& request) {
  const std::string secret = request.token_secret.empty() ? absl::StrCat(request.name, "-token") : request.token_secret;
  return {{"name", kJobTokenVariable},
          {"valueFrom", {{"secretKeyRef", {{"name", secret}, {"key", request.token_key}}}}}};
}

// Returns what torchrun says; each task is a node with one process.
std::vector<std::pair<std::string, std::string>> TorchrunValues(const ManifestRequest& request,
                                                                const ManifestRole& role) {
  const std::string address = ManifestAddress(request, role, 0);
  const size_t colon = address.rfind(':');
  const std::string rank = IndexText(role);
  const std::string world = absl::StrCat(role.count);
  return {{"RANK", rank},
          {"LOCAL_RANK", "0"},
          {"WORLD_SIZE", world},
          {"LOCAL_WORLD_SIZE", "1"},
          {"GROUP_RANK", rank},
          {"GROUP_WORLD_SIZE", world},
          {"ROLE_NAME", "default"},
          {"ROLE_RANK", rank},
          {"ROLE_WORLD_SIZE", world},
          {"MASTER_ADDR", address.substr(0, colon)},
          {"MASTER_PORT", address.substr(colon + 1)},
          {"TORCHELASTIC_RUN_ID", request.name},
          {"TORCHELASTIC_RESTART_COUNT", "0"},
          {"TORCHELASTIC_MAX_RESTARTS", "0"}};
}

}  // namespace

std::string KeptFromExpansion(absl::string_view text) {
  std::string kept;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_read = text[i] == '$' && i + 1 < text.size() && (text[i + 1] == '$' || text[i + 1] == '(');
    kept.append(is_read ? "$$" : std::string(1, text[i]));
  }
  return kept;
}

nlohmann::ordered_json TaskVariables(const ManifestRequest& request, const ManifestRole& role) {
  OrderedJson variables = OrderedJson::array();
  const auto add = [&](const std::string& name, const std::string& value) {
    variables.push_back({{"name", name}, {"value", value}});
  };
  if (NeedsIndex(request, role))
    variables.push_back({{"name", kIndexVariable}, {"valueFrom", {{"fieldRef", {{"fieldPath", kIndexPath}}}}}});
  if (request.naming == TaskNaming::kTfConfig && request.form != ManifestForm::kTfJob)
    add(kTfConfigVariable, TfConfigOfRole(request, role));
  if (request.naming == TaskNaming::kTorchrun)
    for (const auto& [name, value] : TorchrunValues(request, role)) add(name, value);
  variables.push_back(TokenVariable(request));
  if (request.naming != TaskNaming::kAlone && !HasVariable(role, kJoinTimeoutVariable))
    add(kJoinTimeoutVariable, kPodJoinTimeout);
  if (request.naming != TaskNaming::kAlone && !HasVariable(role, kOnSignalVariable)) add(kOnSignalVariable, "leave");
  if (role.job == kPsJob && !HasVariable(role, kLingerVariable))
    add(kLingerVariable, request.form == ManifestForm::kJob ? kLingerOfJob : kLingerUntilEnded);
  for (const auto& [name, value] : role.environment) add(name, KeptFromExpansion(value));
  return variables;
}

}  // namespace muster
