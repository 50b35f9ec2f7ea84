#include "muster/launch/engines/kubernetes/kubernetes_jobs.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/launch/agent/rendezvous.h"
#include "muster/launch/engines/kubernetes/cluster_api.h"
#include "muster/launch/engines/kubernetes/object_calls.h"
#include "muster/launch/engines/kubernetes/own_pod.h"
#include "muster/launch/engines/kubernetes/pod_job.h"
#include "muster/launch/engines/kubernetes/pod_program.h"
#include "muster/launch/engines/kubernetes/pod_variables.h"
#include "muster/launch/engines/kubernetes/preflight.h"
#include "muster/launch/engines/kubernetes/quota.h"
#include "muster/launch/system/random_hex.h"

namespace muster {
namespace {

constexpr absl::Duration kLookPatience = absl::Seconds(10);  // somebody waits for what they asked
constexpr absl::Duration kExecPatience = absl::Seconds(60);
constexpr absl::Duration kAskPatience = absl::Seconds(20);
constexpr absl::Duration kTellPatience = absl::Seconds(5);    // a node that is gone doesn't keep the job from its end
constexpr absl::Duration kStuckPatience = absl::Seconds(40);  // a registry may be wrong for a moment
constexpr size_t kSuffixBytes = 4;
constexpr size_t kJobsInSelector = 100;

KubernetesPlace PlaceIn(const std::string& at, const std::vector<std::string>& environment) {
  if (!at.empty()) return KubernetesPlace::Parse(at);
  const auto pod = ReadPodVariables(environment);
  return KubernetesPlace::Parse(pod.ok() ? pod->at : "");
}

absl::Status DeleteObjects(const Kubectl& kubectl, const std::string& job, size_t pods, bool at_once) {
  for (const KubectlCall& call : DeleteCalls(job, pods, at_once)) RETURN_IF_ERROR(kubectl.Run(call).status());
  return absl::OkStatus();
}

// Returns all pods of these jobs. Unavailable: what answers says that a page is followed by itself, which has no end.
absl::StatusOr<std::vector<PodFacts>> PodsOf(const Kubectl& kubectl, const std::string& name_space,
                                             const std::vector<std::string>& jobs) {
  std::vector<PodFacts> pods;
  std::string next;
  do {
    ASSIGN_OR_RETURN(const std::string list, kubectl.Run(PodPageCall(name_space, jobs, next)));
    ASSIGN_OR_RETURN(PodPage page, ParsePods(list));
    std::move(page.pods.begin(), page.pods.end(), std::back_inserter(pods));
    if (!page.next.empty() && page.next == next)
      return absl::UnavailableError("the API of Kubernetes has answered a page of pods that is followed by itself");
    next = std::move(page.next);
  } while (!next.empty());
  return pods;
}

// The refusals of JobEngine::Submit.
absl::Status AsRefusal(const Kubectl& kubectl, const std::string& manifest, const absl::Status& why) {
  if (absl::IsResourceExhausted(why)) return IfItEverFits(kubectl, manifest, why);
  return absl::IsPermissionDenied(why) ? absl::InvalidArgumentError(why.message()) : why;
}

bool SaysOneOf(const absl::Status& said, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&said](const std::string& one) { return absl::StrContains(said.message(), one); });
}

// What `kubectl exec` says when there is nobody to ask any more. Many other things may be "not found": a context, a
// namespace, kubectl.
bool HasEndedBy(const absl::Status& said, const std::string& job) {
  return SaysOneOf(said, {absl::StrCat("pods \"", job, "\" not found"), "completed pod",
                          absl::StrCat("container not found (\"", kMusterContainer, "\")")});
}

// Likewise of a pod that is there, and doesn't run.
bool HasntBegunBy(const absl::Status& said) {
  return SaysOneOf(
      said, {"ContainerCreating", "is not running", "unable to upgrade connection", "does not have a host assigned"});
}

absl::StatusOr<std::string> UidIn(const std::string& answer) {
  const nlohmann::json pod = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (pod.is_object() && pod.contains("metadata") && pod["metadata"].is_object() && pod["metadata"].contains("uid") &&
      pod["metadata"]["uid"].is_string())
    return pod["metadata"]["uid"].get<std::string>();
  return absl::UnavailableError("kubectl has answered without the uid of the pod that it has made");
}

// Returns the job's name; the script has the same.
absl::StatusOr<std::string> Make(const Kubectl& kubectl, const OpenPodJob& job) {
  const std::string secret = RandomHex(kRendezvousSecretBytes);
  ASSIGN_OR_RETURN(const std::string made, kubectl.Run(CreateCall(job.supervisor, "json")));
  ASSIGN_OR_RETURN(const std::string uid, UidIn(made));
  RETURN_IF_ERROR(kubectl.Run(CreateCall(FilledIn(job.others, secret, uid), "name")).status());
  return job.name;
}

}  // namespace

absl::StatusOr<std::string> PlaceOfKubernetes(const KubernetesSetting& setting,
                                              const std::vector<std::string>& environment) {
  Kubectl kubectl({.kubectl = setting.kubectl.empty() ? kUsualKubectl : setting.kubectl,
                   .kubeconfig = "",
                   .context = setting.context,
                   .name_space = setting.name_space},
                  environment);
  RETURN_IF_ERROR(kubectl.Resolve());
  return kubectl.place().text();
}

KubernetesJobs::KubernetesJobs(const std::string& at, const std::vector<std::string>& environment, const Clock& clock)
    : environment_(environment), clock_(clock), kubectl_(PlaceIn(at, environment), environment) {}

JobTerms KubernetesJobs::TermsOf(const HostSetting& setting) const {
  const KubernetesSetting kubernetes = setting.kubernetes.value_or(KubernetesSetting());
  return {.hosts = kubernetes.nodes,
          .chains = false,
          .start_tries = kubernetes.start_tries,
          .start_pause = kubernetes.start_pause};
}

std::string KubernetesJobs::Script(const JobRequest& request) const {
  return PodJobText({.request = request, .place = kubectl_.place(), .suffix = RandomHex(kSuffixBytes)});
}

std::string KubernetesJobs::IdIn(const std::string& script) const {
  const auto text = PosixFileSystem().ReadFile(script);
  const auto job = ParsePodJob(text.value_or(""));
  return job.ok() ? job->name : "";
}

// The digits stand where the run's id is needed, too. Those that might be a number would need quotes in YAML.
std::string KubernetesJobs::ScriptAnew(const std::string& script_text) const {
  const auto job = ParsePodJob(script_text);
  if (!job.ok() || job->name.size() < 2 * kSuffixBytes) return script_text;
  const std::string digits = job->name.substr(job->name.size() - 2 * kSuffixBytes);
  std::string next = RandomHex(kSuffixBytes);
  while (absl::ascii_isdigit(static_cast<unsigned char>(next[0]))) next = RandomHex(kSuffixBytes);
  return absl::StrReplaceAll(script_text, {{digits, next}});
}

absl::StatusOr<std::string> KubernetesJobs::Submit(const std::string& script, const std::string& after) {
  ASSIGN_OR_RETURN(const std::string text, PosixFileSystem().ReadFile(script));
  ASSIGN_OR_RETURN(const OpenPodJob job, ParsePodJob(text));
  if (!after.empty() || !job.after.empty())
    return absl::InvalidArgumentError("a job of Kubernetes can't wait for the end of others");
  RETURN_IF_ERROR(kubectl_.CheckSamePlace());
  if (const absl::Status checked = CheckInCluster(kubectl_, text); !checked.ok())
    return AsRefusal(kubectl_, text, checked);
  const auto made = Make(kubectl_, job);
  if (made.ok()) return made;
  const absl::Status deleted = DeleteObjects(kubectl_, job.name, ObjectsIn(text), /*at_once=*/true);
  const absl::Status refusal = AsRefusal(kubectl_, text, made.status());
  if (deleted.ok()) return refusal;
  // The pod owns the others.
  const std::string by_hand = kubectl_.CommandLine({"delete", absl::StrCat("pod/", job.name)});
  return absl::Status(refusal.code(),
                      absl::StrCat(std::string(refusal.message()), "; what was made can't be deleted: `", by_hand,
                                   "` does it (", std::string(deleted.message()), ")"));
}

absl::StatusOr<std::string> KubernetesJobs::WouldTake(const std::string& script_text) {
  RETURN_IF_ERROR(ParsePodJob(script_text).status());
  if (const absl::Status checked = CheckInCluster(kubectl_, script_text); !checked.ok())
    return AsRefusal(kubectl_, script_text, checked);
  return absl::StrCat("context ", kubectl_.place().context, ", namespace ", kubectl_.place().name_space,
                      " would take it (kubectl create --dry-run=server)");
}

absl::StatusOr<std::map<std::string, JobNews>> KubernetesJobs::Look(const std::vector<std::string>& ids) {
  if (const auto own = ReadPodVariables(environment_); own.ok() && ids == std::vector<std::string>{own->job})
    return std::map<std::string, JobNews>{{own->job, NewsOfOwnPod(environment_)}};
  std::map<std::string, JobNews> news;
  std::vector<PodFacts> pods;
  for (size_t begin = 0; begin < ids.size(); begin += kJobsInSelector) {
    const std::vector<std::string> some(
        ids.begin() + static_cast<std::ptrdiff_t>(begin),
        ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), begin + kJobsInSelector)));
    ASSIGN_OR_RETURN(const std::vector<PodFacts> theirs, PodsOf(kubectl_, NameSpace(), some));
    pods.insert(pods.end(), theirs.begin(), theirs.end());
  }
  images_.SteadyWords(pods);
  for (const auto& [job, its] : NewsOfPods(pods)) news[job] = its;
  for (const PodFacts& pod : pods)
    if (pod.is_supervisor) NoteIfLate(pod, news[pod.job]);
  if (std::any_of(ids.begin(), ids.end(), [&news](const std::string& id) { return !news.contains(id); })) {
    RETURN_IF_ERROR(kubectl_.CheckSamePlace());
    const std::string why = WhyNoPods();
    for (const std::string& id : ids) news.try_emplace(id, JobNews{.text = why, .taken_away = true});
  }
  for (const std::string& id : ids) NoteCancellation(id, news[id]);
  return news;
}

// The namespace is part of what the API is asked. Without a context kubectl takes that of the pod it is in.
std::string KubernetesJobs::NameSpace() const {
  if (!kubectl_.place().name_space.empty()) return kubectl_.place().name_space;
  const auto api = ClusterApiOfPod(environment_);
  if (!api.ok()) return "default";
  const std::string first = VariableIn(environment_, "POD_NAMESPACE");
  return first.empty() ? api->name_space : first;
}

absl::Status KubernetesJobs::DeleteAll(const std::string& job, bool at_once) const {
  ASSIGN_OR_RETURN(const std::vector<PodFacts> pods, PodsOf(kubectl_, NameSpace(), {job}));
  return DeleteObjects(kubectl_, job, pods.size(), at_once);
}

// The list of pods of a namespace that isn't there is an empty one.
std::string KubernetesJobs::WhyNoPods() const {
  const std::string& name = kubectl_.place().name_space;
  if (name.empty()) return "";
  const absl::Status asked =
      kubectl_.Run({"get", absl::StrCat("namespaces/", name), "--output=name"}, "", kLookPatience).status();
  const std::string gone = absl::StrCat("there is no namespace '", name, "'");
  return absl::StartsWith(asked.message(), gone) ? gone : "";
}

void KubernetesJobs::NoteCancellation(const std::string& id, JobNews& news) {
  if (news.phase == JobPhase::kEnded || news.phase == JobPhase::kUnknown) {
    news.cancelled = cancelled_.contains(id);
  } else if (news.cancelled) {
    cancelled_.insert(id);
  } else if (news.ending) {
    cancelled_.erase(id);
  }
}

void KubernetesJobs::NoteIfLate(const PodFacts& supervisor, JobNews& news) {
  if (news.phase != JobPhase::kWaits || news.ending) {
    waits_since_.erase(supervisor.job);
    stuck_since_.erase(supervisor.job);
    return;
  }
  if (!news.stuck) stuck_since_.erase(supervisor.job);
  const bool is_stuck =
      news.stuck &&
      clock_.Now() - stuck_since_.try_emplace(supervisor.job, clock_.Now()).first->second >= kStuckPatience;
  if (is_stuck || news.hopeless) {
    news.late =
        absl::StrCat("its pods can't start, which waiting doesn't change (", news.text, "), and were given back");
    return;
  }
  const absl::Time since = waits_since_.try_emplace(supervisor.job, clock_.Now()).first->second;
  if (clock_.Now() - since < supervisor.start_timeout) return;
  news.late = absl::StrCat("its pods didn't all start within ", absl::FormatDuration(supervisor.start_timeout), " (",
                           news.text, "), and were given back");
}

absl::Status KubernetesJobs::RunBesideSupervisor(const std::string& id, const std::string& program,
                                                 absl::Duration patience) const {
  return kubectl_
      .Run({"exec", id, absl::StrCat("--container=", kMusterContainer), "--", "sh", "-c", program}, "", patience)
      .status();
}

absl::Status KubernetesJobs::End(const std::string& id, JobEnd how) {
  RETURN_IF_ERROR(kubectl_.CheckSamePlace());
  if (how == JobEnd::kGiveBack) return DeleteAll(id, /*at_once=*/true);
  if (how == JobEnd::kCancel) {
    // Otherwise the supervisor would take the deletion of its pod for an eviction. One that can't hear it doesn't run.
    static_cast<void>(RunBesideSupervisor(id, NoteProgram(), kTellPatience));
    cancelled_.insert(id);
    return DeleteAll(id, /*at_once=*/false);
  }
  const absl::Status asked = RunBesideSupervisor(id, AskProgram(), kAskPatience);
  return HasEndedBy(asked, id) ? absl::OkStatus() : asked;
}

absl::StatusOr<OwnJob> KubernetesJobs::Own() {
  ASSIGN_OR_RETURN(const PodVariables pod, ReadPodVariables(environment_));
  OwnJob own{.id = pod.job, .hosts = {}, .run = pod.run};
  for (int i = 0; i < pod.pods; ++i) own.hosts.push_back(HostOfPod(i));
  return own;
}

absl::Status KubernetesJobs::Requeue(const std::string& /*id*/) {
  return absl::UnimplementedError("Kubernetes doesn't begin a job anew");
}

absl::StatusOr<std::string> KubernetesJobs::Ask(const std::string& id, const std::vector<std::string>& arguments,
                                                const std::string& input) {
  if (id.empty()) return absl::InvalidArgumentError("there is no such job");
  // The image's muster, as the pod's own program finds it.
  std::vector<std::string> words = {
      "exec", "--stdin", id, absl::StrCat("--container=", kMusterContainer), "--", "sh", "-c", kRunMuster, "muster"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto answer = kubectl_.Run(words, input, kExecPatience);
  if (answer.ok()) return answer;
  const std::string said(answer.status().message());
  // Then the words are those of muster there.
  const bool has_run = absl::StrContains(said, "command terminated");
  if (!has_run && (HasEndedBy(answer.status(), id) || HasntBegunBy(answer.status())))
    return absl::UnavailableError(absl::StrCat("the supervisor's pod ", id, " can't be asked: ", said));
  // NotFound would say that the job hasn't the experiment yet.
  const bool is_known = !has_run && !absl::IsInvalidArgument(answer.status()) && !absl::IsNotFound(answer.status());
  return is_known ? answer.status() : absl::InternalError(said);
}

}  // namespace muster
