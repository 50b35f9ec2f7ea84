#include "muster/launch/engines/kubernetes/preflight.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/status_macros.h"
#include "muster/launch/engines/kubernetes/gang.h"
#include "muster/launch/engines/kubernetes/object_calls.h"

namespace muster {
namespace {

// Returns what stands behind this key anywhere in the manifest: muster writes such keys in one way alone, a user's
// pod_template perhaps in others.
std::set<std::string> ValuesIn(const std::string& manifest, absl::string_view key) {
  std::set<std::string> values;
  const std::string beginning = absl::StrCat(key, ": ");
  for (size_t at = manifest.find(beginning); at != std::string::npos; at = manifest.find(beginning, at + 1)) {
    const size_t begin = at + beginning.size();
    std::string value = manifest.substr(begin, manifest.find_first_of(",}\n", begin) - begin);
    values.insert(std::string(absl::StripSuffix(absl::StripPrefix(value, "\""), "\"")));
  }
  return values;
}

// A question to the API, and what its answer means.
struct Check {
  Kubectl::Asked asked;
  std::function<absl::Status(const absl::StatusOr<std::string>& answer)> judge;
};

// `subresource`: "exec"; "" for the objects themselves. kubectl takes "pods/exec" for a pod whose name is exec.
Check CheckRight(const Kubectl& kubectl, const std::string& verb, const std::string& objects,
                 const std::string& subresource = "") {
  std::vector<std::string> words = {"auth", "can-i", verb, objects};
  if (!subresource.empty()) words.push_back(absl::StrCat("--subresource=", subresource));
  return {
      .asked = kubectl.Ask(words), .judge = [=, &kubectl](const absl::StatusOr<std::string>& answer) {
        if (answer.ok() && absl::StartsWith(absl::StripAsciiWhitespace(*answer), "yes")) return absl::OkStatus();
        // "no" comes with exit code 1, and sometimes with a reason.
        const bool says_no =
            answer.ok() || absl::StrContains(answer.status().message(), "refuses what is asked for: no");
        if (!says_no) return answer.status();
        return absl::PermissionDeniedError(absl::StrCat(
            "you may not ", verb, " ", objects, subresource.empty() ? "" : "/", subresource, " in namespace ",
            kubectl.place().name_space, " (context ", kubectl.place().context, "): kubectl ", absl::StrJoin(words, " "),
            " says no; accepted: a namespace where you may (kubernetes: {namespace: …}), or a role with that "
            "right"));
      }};
}

Check CheckClaims(const Kubectl& kubectl, const std::set<std::string>& claims) {
  std::vector<std::string> words = {"get", "persistentvolumeclaims", "--output=name"};
  words.insert(words.end(), claims.begin(), claims.end());
  return {.asked = kubectl.Ask(words), .judge = [](const absl::StatusOr<std::string>& answer) {
            if (answer.ok() || !absl::StrContains(answer.status().message(), "not found")) return answer.status();
            return absl::InvalidArgumentError(absl::StrCat(
                "a claim isn't there: ", std::string(answer.status().message()),
                "; accepted: kubernetes: {claims: [NAME:PATH]} with names that `kubectl get persistentvolumeclaims` "
                "lists"));
          }};
}

bool Wants(const std::string& manifest, PodGang gang) {
  return gang == PodGang::kKueue ? absl::StrContains(manifest, "kueue.x-k8s.io/pod-group-name")
                                 : absl::StrContains(manifest, absl::StrCat(ApiGroupOf(gang), "/v1"));
}

Check CheckGang(const Kubectl& kubectl, PodGang gang) {
  return {.asked = kubectl.Ask({"api-resources", absl::StrCat("--api-group=", ApiGroupOf(gang)), "--output=name"}),
          .judge = [gang](const absl::StatusOr<std::string>& offered) {
            if (!offered.ok() || !absl::StripAsciiWhitespace(*offered).empty()) return offered.status();
            return absl::InvalidArgumentError(absl::StrCat(
                "this cluster has no ", PodGangText(gang), " (no API ", ApiGroupOf(gang),
                "); accepted: gang: none, or one of kueue, volcano and coscheduling that `kubectl api-resources` "
                "shows"));
          }};
}

}  // namespace

// All are asked at the same time, and the first that says no counts.
absl::Status CheckInCluster(const Kubectl& kubectl, const std::string& manifest) {
  std::vector<Check> checks;
  checks.push_back(CheckRight(kubectl, "create", "pods"));
  checks.push_back(CheckRight(kubectl, "create", "pods", "exec"));
  // Otherwise the job could never be looked at, or taken away again: its pods are found by their label, and `kubectl
  // exec` gets the pod first.
  for (const char* verb : {"get", "list"}) checks.push_back(CheckRight(kubectl, verb, "pods"));
  for (const char* objects : {"pods", "services", "secrets"}) checks.push_back(CheckRight(kubectl, "delete", objects));
  if (const std::set<std::string> claims = ValuesIn(manifest, "claimName"); !claims.empty())
    checks.push_back(CheckClaims(kubectl, claims));
  for (const PodGang gang : {PodGang::kKueue, PodGang::kVolcano, PodGang::kCoscheduling})
    if (Wants(manifest, gang)) checks.push_back(CheckGang(kubectl, gang));
  checks.push_back({.asked = kubectl.Ask(TryCall(manifest)),
                    .judge = [](const absl::StatusOr<std::string>& answer) { return answer.status(); }});
  for (Check& check : checks) RETURN_IF_ERROR(check.judge(kubectl.AnswerTo(check.asked)));
  return absl::OkStatus();
}

}  // namespace muster
