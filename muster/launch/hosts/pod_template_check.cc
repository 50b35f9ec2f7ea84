#include "muster/launch/hosts/pod_template_check.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr char kContainerOfTemplate[] = "muster";
constexpr absl::Duration kGraceOfKubernetes = absl::Seconds(30);  // of a pod that states none
constexpr int64_t kLeastGraceSeconds = 10;                        // muster itself takes 5 of them
constexpr int64_t kMostGraceSeconds = 30 * 24 * 3600;

// Returns nullptr if it isn't there.
const Json* KeyIn(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) ? &object[key] : nullptr;
}

absl::Status RefusedInTemplate(const std::string& place, const std::string& why, const std::string& accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat("kubernetes: pod_template: ", place, " ", why, "; accepted: ", accepted));
}

// What isn't a map would replace one of muster's.
absl::Status CheckMap(const std::string& place, const Json* value) {
  if (value == nullptr || value->is_object()) return absl::OkStatus();
  return RefusedInTemplate(place,
                           absl::StrCat("is ", OneLine(value->dump(), 200), ", which would take muster's own away"),
                           "a map, whose keys are merged into muster's");
}

// Other lists would replace muster's instead of being merged into it by that key.
absl::Status CheckList(const std::string& place, const Json* value, const char* key) {
  if (value == nullptr ||
      (value->is_array() && !value->empty() && std::all_of(value->begin(), value->end(), [key](const Json& item) {
         const Json* const name = KeyIn(item, key);
         return name != nullptr && name->is_string();
       })))
    return absl::OkStatus();
  return RefusedInTemplate(
      place, absl::StrCat("is ", OneLine(value->dump(), 200), ", which would take muster's own away"),
      absl::StrCat("a list of maps, each with its ", key, ", which are merged into muster's by it"));
}

// `object`: "metadata".
absl::Status CheckWithout(const Json& pod, const char* object, std::initializer_list<const char*> keys) {
  const Json* const map = KeyIn(pod, object);
  for (const char* key : keys)
    if (map != nullptr && KeyIn(*map, key) != nullptr)
      return RefusedInTemplate(absl::StrCat(object, ": ", key), "is muster's own, by which it finds its pods",
                               "pod_template without it");
  return absl::OkStatus();
}

// What else it had would take the place of the pod's kind, or be nothing of a pod.
absl::Status CheckKeysOfPod(const Json& pod) {
  for (const auto& [key, value] : pod.items())
    if (key != "metadata" && key != "spec")
      return RefusedInTemplate(absl::StrCat("'", OneLine(key), "'"), "is nothing that is merged into a pod",
                               "metadata and spec");
  return absl::OkStatus();
}

// A pod that began again would never have ended.
absl::Status CheckRestart(const Json* restart) {
  if (restart == nullptr || *restart == "Never") return absl::OkStatus();
  return RefusedInTemplate("spec: restartPolicy", absl::StrCat("is ", OneLine(restart->dump(), 200)),
                           "Never, as the supervisor decides what is restarted");
}

absl::Status CheckLabelsOfTemplate(const Json& labels) {
  for (const auto& [key, value] : labels.items())
    if (absl::StartsWith(key, "muster/"))
      return RefusedInTemplate(absl::StrCat("metadata: labels: '", OneLine(key), "'"),
                               "is muster's own, by which it finds its pods", "names that don't begin with muster/");
  return absl::OkStatus();
}

absl::Status CheckContainers(const Json* containers) {
  RETURN_IF_ERROR(CheckList("spec: containers", containers, "name"));
  if (containers == nullptr) return absl::OkStatus();
  for (const Json& container : *containers) {
    if (container["name"] != kContainerOfTemplate) continue;
    RETURN_IF_ERROR(CheckList("spec: containers: muster: env", KeyIn(container, "env"), "name"));
    RETURN_IF_ERROR(CheckList("spec: containers: muster: volumeMounts", KeyIn(container, "volumeMounts"), "mountPath"));
  }
  return absl::OkStatus();
}

absl::Status CheckGrace(const Json* grace) {
  if (grace == nullptr || grace->is_null()) return absl::OkStatus();
  if (grace->is_number_integer() && *grace >= kLeastGraceSeconds && *grace <= kMostGraceSeconds)
    return absl::OkStatus();
  return RefusedInTemplate(
      "spec: terminationGracePeriodSeconds", absl::StrCat("is ", OneLine(grace->dump(), 200)),
      absl::StrCat("whole seconds from ", kLeastGraceSeconds, ", of which the tasks get all but 5"));
}

}  // namespace

absl::Status CheckPodTemplate(const std::string& pod_template) {
  const Json pod = Json::parse(pod_template, nullptr, /*allow_exceptions=*/false);
  if (!pod.is_object()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckKeysOfPod(pod));
  for (const char* key : {"metadata", "spec"}) RETURN_IF_ERROR(CheckMap(key, KeyIn(pod, key)));
  RETURN_IF_ERROR(CheckWithout(pod, "metadata", {"name", "namespace", "ownerReferences"}));
  RETURN_IF_ERROR(CheckWithout(pod, "spec", {"hostname", "subdomain"}));
  if (const Json* const metadata = KeyIn(pod, "metadata"); metadata != nullptr) {
    for (const char* key : {"labels", "annotations"})
      RETURN_IF_ERROR(CheckMap(absl::StrCat("metadata: ", key), KeyIn(*metadata, key)));
    if (const Json* const labels = KeyIn(*metadata, "labels"); labels != nullptr)
      RETURN_IF_ERROR(CheckLabelsOfTemplate(*labels));
  }
  const Json* const spec = KeyIn(pod, "spec");
  if (spec == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(CheckRestart(KeyIn(*spec, "restartPolicy")));
  RETURN_IF_ERROR(CheckContainers(KeyIn(*spec, "containers")));
  RETURN_IF_ERROR(CheckList("spec: volumes", KeyIn(*spec, "volumes"), "name"));
  return CheckGrace(KeyIn(*spec, "terminationGracePeriodSeconds"));
}

std::optional<absl::Duration> GraceOfPodTemplate(const std::string& pod_template) {
  const Json pod = Json::parse(pod_template, nullptr, /*allow_exceptions=*/false);
  const Json* const spec = KeyIn(pod, "spec");
  const Json* const grace = spec == nullptr ? nullptr : KeyIn(*spec, "terminationGracePeriodSeconds");
  if (grace == nullptr) return std::nullopt;
  if (grace->is_null()) return kGraceOfKubernetes;
  if (!grace->is_number_integer()) return std::nullopt;
  return absl::Seconds(grace->get<int64_t>());
}

}  // namespace muster
