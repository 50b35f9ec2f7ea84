#include "muster/launch/engines/kubernetes/preflight.h"

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
#include "muster/launch/engines/kubernetes/manifest.h"

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

// `subresource`: "exec"; "" for the objects themselves. kubectl takes "pods/exec" for a pod whose name is exec.
absl::Status CheckRight(const Kubectl& kubectl, const std::string& verb, const std::string& objects,
                        const std::string& subresource = "") {
  std::vector<std::string> asked = {"auth", "can-i", verb, objects};
  if (!subresource.empty()) asked.push_back(absl::StrCat("--subresource=", subresource));
  const auto answer = kubectl.Run(asked);
  if (answer.ok() && absl::StartsWith(absl::StripAsciiWhitespace(*answer), "yes")) return absl::OkStatus();
  // "no" comes with exit code 1, and sometimes with a reason.
  const bool says_no = answer.ok() || absl::StrContains(answer.status().message(), "refuses what is asked for: no");
  if (!says_no) return answer.status();
  return absl::PermissionDeniedError(absl::StrCat(
      "you may not ", verb, " ", objects, subresource.empty() ? "" : "/", subresource, " in namespace ",
      kubectl.place().name_space, " (context ", kubectl.place().context, "): kubectl ", absl::StrJoin(asked, " "),
      " says no; accepted: a namespace where you may (kubernetes: {namespace: …}), or a role with that "
      "right"));
}

absl::Status CheckClaims(const Kubectl& kubectl, const std::set<std::string>& claims) {
  if (claims.empty()) return absl::OkStatus();
  std::vector<std::string> words = {"get", "persistentvolumeclaims", "--output=name"};
  words.insert(words.end(), claims.begin(), claims.end());
  const absl::Status got = kubectl.Run(words).status();
  if (got.ok() || !absl::StrContains(got.message(), "not found")) return got;
  return absl::InvalidArgumentError(absl::StrCat(
      "a claim isn't there: ", std::string(got.message()),
      "; accepted: kubernetes: {claims: [NAME:PATH]} with names that `kubectl get persistentvolumeclaims` lists"));
}

absl::Status CheckGang(const Kubectl& kubectl, const std::string& manifest) {
  for (const PodGang gang : {PodGang::kKueue, PodGang::kVolcano, PodGang::kCoscheduling}) {
    const bool wants_it = gang == PodGang::kKueue ? absl::StrContains(manifest, "kueue.x-k8s.io/pod-group-name")
                                                  : absl::StrContains(manifest, absl::StrCat(ApiGroupOf(gang), "/v1"));
    if (!wants_it) continue;
    ASSIGN_OR_RETURN(const std::string offered,
                     kubectl.Run({"api-resources", absl::StrCat("--api-group=", ApiGroupOf(gang)), "--output=name"}));
    if (!absl::StripAsciiWhitespace(offered).empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "this cluster has no ", PodGangText(gang), " (no API ", ApiGroupOf(gang),
        "); accepted: gang: none, or one of kueue, volcano and coscheduling that `kubectl api-resources` shows"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInCluster(const Kubectl& kubectl, const std::string& manifest) {
  RETURN_IF_ERROR(CheckRight(kubectl, "create", "pods"));
  RETURN_IF_ERROR(CheckRight(kubectl, "create", "pods", "exec"));
  // Otherwise the job could never be taken away again.
  for (const char* objects : {"pods", "services", "secrets"}) RETURN_IF_ERROR(CheckRight(kubectl, "delete", objects));
  RETURN_IF_ERROR(CheckClaims(kubectl, ValuesIn(manifest, "claimName")));
  RETURN_IF_ERROR(CheckGang(kubectl, manifest));
  return kubectl.Run({"create", "--dry-run=server", "--output=name", "--filename=-"}, manifest).status();
}

}  // namespace muster
