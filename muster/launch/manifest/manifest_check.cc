#include "muster/launch/manifest/manifest_check.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/text/utf8.h"
#include "muster/cluster/quoted.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/manifest/manifest_names.h"
#include "muster/launch/manifest/pod_template.h"
#include "muster/launch/task/resources.h"

namespace muster {
namespace {

constexpr size_t kLongestHostName = 63;
constexpr int64_t kGreatestUser = 2147483647;  // Kubernetes takes no greater UID or GID

// Returns whether a registry can have an image of this name, [HOST/]PATH[:TAG][@DIGEST].
bool MayBeImage(const std::string& image) {
  const std::string name = image.substr(0, image.find('@'));
  const size_t slash = name.find('/');
  const std::string first = name.substr(0, slash);
  const bool has_host = slash != std::string::npos && (absl::StrContains(first, '.') || absl::StrContains(first, ':'));
  const std::string path = has_host ? name.substr(slash + 1) : name;
  const std::string untagged = path.substr(0, path.find(':'));
  return !untagged.empty() && std::all_of(untagged.begin(), untagged.end(), [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) || absl::ascii_isdigit(static_cast<unsigned char>(c)) ||
           absl::StrContains("._-/", c);
  });
}

using ManifestMistakes = std::vector<std::string>;

void Note(const absl::Status& status, ManifestMistakes& mistakes) {
  if (!status.ok()) mistakes.emplace_back(status.message());
}

// Its longest host name must be a DNS label, too.
void CheckManifestName(const ManifestRequest& request, ManifestMistakes& mistakes) {
  const absl::Status label = CheckDnsLabel("--name", request.name);
  if (!label.ok()) return Note(label, mistakes);
  size_t added = 0;
  for (const ManifestRole& role : request.roles) {
    const std::string host = absl::StrCat(JobNameOf(request, role), "-", role.count - 1);
    if (host.size() > kLongestHostName) added = std::max(added, host.size() - request.name.size());
  }
  if (added > 0)
    mistakes.push_back(absl::StrCat("--name ", Quoted(request.name),
                                    ": with what follows it in the tasks' names it is ",
                                    "longer than 63 characters; accepted are at most ", kLongestHostName - added));
}

void CheckNames(const ManifestRequest& request, ManifestMistakes& mistakes) {
  if (!request.name_space.empty()) Note(CheckDnsLabel("--namespace", request.name_space), mistakes);
  if (!request.token_secret.empty()) Note(CheckDnsName("--token_secret", request.token_secret), mistakes);
  if (!request.pull_secret.empty()) Note(CheckDnsName("--pull_secret", request.pull_secret), mistakes);
  if (!request.service_account.empty()) Note(CheckDnsName("--service_account", request.service_account), mistakes);
  Note(CheckSecretKey("--token_secret, its key", request.token_key), mistakes);
  Note(CheckLabelKey("--gpu_resource", request.gpu_resource), mistakes);
  for (const auto& [key, value] : request.annotations) Note(CheckLabelKey("--annotation", key), mistakes);
  for (const auto& [key, value] : request.labels) {
    Note(CheckLabelKey("--label", key), mistakes);
    Note(CheckLabelValue(absl::StrCat("--label ", key), value), mistakes);
    if (absl::StartsWith(key, "app.kubernetes.io/"))
      mistakes.push_back(
          absl::StrCat("--label ", key, ": muster's own, by which its pods are found; accepted: others"));
  }
  for (const auto& [key, value] : request.node_selector) {
    Note(CheckLabelKey("--node_selector", key), mistakes);
    Note(CheckLabelValue(absl::StrCat("--node_selector ", key), value), mistakes);
  }
  for (const ManifestToleration& toleration : request.tolerations) {
    Note(CheckLabelKey("--toleration", toleration.key), mistakes);
    Note(CheckLabelValue(absl::StrCat("--toleration ", toleration.key), toleration.value.value_or("")), mistakes);
    const std::set<std::string> effects = {"", "NoSchedule", "PreferNoSchedule", "NoExecute"};
    if (!effects.contains(toleration.effect))
      mistakes.push_back(absl::StrCat("--toleration ", toleration.key, ": its effect is ", Quoted(toleration.effect),
                                      "; accepted: NoSchedule, PreferNoSchedule, NoExecute"));
  }
}

// An absolute path, which Kubernetes takes for a mount or a working directory.
bool IsAbsoluteLine(const std::string& path) {
  const auto is_control = [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); };
  return absl::StartsWith(path, "/") && std::none_of(path.begin(), path.end(), is_control);
}

void CheckPaths(const ManifestRequest& request, ManifestMistakes& mistakes) {
  std::set<std::string> paths = {"/dev/shm"};
  for (const ManifestClaim& claim : request.claims) {
    Note(CheckDnsName("--claim", claim.name), mistakes);
    if (!IsAbsoluteLine(claim.path) || claim.path.size() == 1 || absl::StrContains(claim.path, ':'))
      mistakes.push_back(
          absl::StrCat("--claim ", claim.name, ": its path is ", Quoted(claim.path),
                       "; accepted is an absolute path without a colon and control characters, not / itself"));
    if (!paths.insert(claim.path).second)
      mistakes.push_back(absl::StrCat("--claim ", claim.name, ": ", claim.path, " is taken; accepted: another path"));
  }
  // A relative model folder would be another one in each pod.
  for (const auto& [flag, path] : {std::pair("--workdir ", request.work_folder), {"--model_dir ", request.model_dir}})
    if (!path.empty() && !IsAbsoluteLine(path))
      mistakes.push_back(
          absl::StrCat(flag, Quoted(path), ": accepted is an absolute path in the pods, without control characters"));
}

void CheckUser(const ManifestRequest& request, ManifestMistakes& mistakes) {
  if (!request.user.has_value()) return;
  for (const int64_t id : {request.user->user, request.user->group})
    if (id < 0 || id > kGreatestUser) {
      mistakes.push_back(absl::StrCat("--user: ", id, " is no UID or GID of a pod; accepted: 0 to ", kGreatestUser));
      return;
    }
}

// YAML has only text: other bytes would become other ones, and a token of such bytes one that everybody knows.
void CheckTexts(const ManifestRequest& request, ManifestMistakes& mistakes) {
  const auto check = [&mistakes](const std::string& what, const std::string& text) {
    if (!IsUtf8(text)) mistakes.push_back(absl::StrCat(what, ": isn't text; accepted: UTF-8"));
  };
  check("MUSTER_JOB_TOKEN", request.token);
  check("--model_dir", request.model_dir);
  check("--workdir", request.work_folder);
  for (const ManifestClaim& claim : request.claims) check(absl::StrCat("--claim ", claim.name), claim.path);
  for (const auto& [key, value] : request.annotations) check(absl::StrCat("--annotation ", key), value);
  for (const ManifestRole& role : request.roles) {
    for (const std::string& word : role.command)
      check(absl::StrCat("the command of the ", role.job, ", ", Quoted(word)), word);
    for (const auto& [name, value] : role.environment) check(absl::StrCat("variable ", name), value);
  }
}

void CheckMemory(const ManifestRequest& request, ManifestMistakes& mistakes) {
  for (const ManifestRole& role : request.roles) {
    if (!request.shm_bytes.has_value() || !role.resources.mem_bytes.has_value()) continue;
    if (*request.shm_bytes >= *role.resources.mem_bytes)
      mistakes.push_back(absl::StrCat(
          "--shm ", MemoryText(*request.shm_bytes), ": what is in /dev/shm counts as memory ", "of the ", role.job,
          ", which has ", MemoryText(*role.resources.mem_bytes), "; accepted: less than that, or more mem"));
  }
}

void CheckForm(const ManifestRequest& request, ManifestMistakes& mistakes) {
  if (request.form != ManifestForm::kTfJob) return;
  if (request.naming == TaskNaming::kTorchrun)
    mistakes.push_back(
        "--form tfjob: its operator writes TF_CONFIG, which torchrun doesn't read; accepted: jobset, job");
  if (!request.model_dir.empty())
    mistakes.push_back(
        "--form tfjob: its operator writes TF_CONFIG, without --model_dir; accepted: the program's own "
        "flag, behind PROGRAM, or --form jobset");
}

}  // namespace

absl::Status CheckManifest(const ManifestRequest& request) {
  ManifestMistakes mistakes;
  CheckManifestName(request, mistakes);
  if (request.image.empty())
    mistakes.push_back(
        "no image; accepted: --image NAME, or kubernetes.image or train.image of the file: one that has the program, "
        "such as docs/containers.md makes");
  else if (!MayBeImage(request.image))
    mistakes.push_back(absl::StrCat("--image ", Quoted(request.image),
                                    ": accepted is the name of an image, in lower-case letters but for its host and "
                                    "tag, as registry.example/team/train:1"));
  CheckNames(request, mistakes);
  CheckPaths(request, mistakes);
  CheckUser(request, mistakes);
  CheckTexts(request, mistakes);
  CheckMemory(request, mistakes);
  CheckForm(request, mistakes);
  if (mistakes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
}

}  // namespace muster
