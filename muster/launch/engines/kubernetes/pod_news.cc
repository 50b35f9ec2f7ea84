#include "muster/launch/engines/kubernetes/pod_news.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/engines/kubernetes/pod_job.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostOfReason = 500;  // bytes
constexpr size_t kPodsNamed = 3;       // in one text
constexpr char kOverMemory[] = "OOMKilled";

const Json& At(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::string TextAt(const Json& object, const char* key) {
  const Json& value = At(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

// "Unschedulable: 0/3 nodes are available", or "" for neither.
std::string ReasonAndMessage(const Json& object) {
  const std::string reason = TextAt(object, "reason"), message = OneLine(TextAt(object, "message"), kMostOfReason);
  return absl::StrCat(reason, reason.empty() || message.empty() ? "" : ": ", message);
}

bool IsFailedPull(const std::string& text) { return absl::StartsWith(text, "ErrImagePull"); }

bool LacksImage(const std::string& text) { return IsFailedPull(text) || absl::StartsWith(text, "ImagePullBackOff"); }

bool IsHopeless(const std::string& text) {
  return absl::StartsWith(text, "InvalidImageName") || absl::StartsWith(text, "ErrImageNeverPull");
}

// What a person has to change before the pod can start.
bool IsStuckReason(const std::string& text) {
  for (const char* reason : {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
    if (absl::StartsWith(text, reason)) return true;
  if (!LacksImage(text)) return IsHopeless(text);
  const std::string lower = absl::AsciiStrToLower(text);
  for (const char* word : {"not found", "unauthorized", "denied", "manifest unknown", "authorization failed"})
    if (absl::StrContains(lower, word)) return true;
  return false;
}

// The one whose state says most: that of muster last.
std::string WhyWaiting(const Json& pod) {
  const Json& status = At(pod, "status");
  for (const Json& condition : At(status, "conditions"))
    if (TextAt(condition, "type") == "PodScheduled" && TextAt(condition, "status") == "False")
      return ReasonAndMessage(condition);
  std::string why;
  for (const char* kind : {"initContainerStatuses", "containerStatuses"})
    for (const Json& container : At(status, kind)) {
      const std::string text = ReasonAndMessage(At(At(container, "state"), "waiting"));
      if (!text.empty() && (why.empty() || !absl::StartsWith(text, "PodInitializing"))) why = text;
    }
  return why.empty() ? "not scheduled yet" : why;
}

// "OOMKilled: it used more than the memory limit of its pod, 2Gi; …"
std::string OverMemory(const Json& pod) {
  std::string limit;
  for (const Json& container : At(At(pod, "spec"), "containers"))
    if (TextAt(container, "name") == kMusterContainer)
      limit = TextAt(At(At(container, "resources"), "limits"), "memory");
  return absl::StrCat(
      kOverMemory, ": ",
      limit.empty() ? "it used more than the memory of its pod"
                    : absl::StrCat("it used more than the memory limit of its pod, ", OneLine(limit, kMostOfReason)),
      "; state more mem for the tasks");
}

std::string HowItEnded(const Json& pod) {
  const Json& status = At(pod, "status");
  const std::string own = ReasonAndMessage(status);
  if (!own.empty()) return own;
  for (const Json& container : At(status, "containerStatuses")) {
    const Json& end = At(At(container, "state"), "terminated");
    if (TextAt(container, "name") != kMusterContainer || !end.is_object()) continue;
    const std::string reason = TextAt(end, "reason");
    const Json& code = At(end, "exitCode");
    if (reason == kOverMemory) return OverMemory(pod);
    if (code == 127)
      return "exit code 127: the image has no muster in its PATH, or no sh (kubernetes: muster says where it is)";
    return absl::StrCat(reason, reason.empty() ? "" : ", ", "exit code ",
                        code.is_number_integer() ? code.dump() : "unknown");
  }
  return TextAt(status, "phase");
}

std::optional<int> ExitCodeIn(const Json& status) {
  for (const Json& container : At(status, "containerStatuses")) {
    const Json& code = At(At(At(container, "state"), "terminated"), "exitCode");
    if (TextAt(container, "name") == kMusterContainer && code.is_number_integer()) return code.get<int>();
  }
  return std::nullopt;
}

// "EvictionByEvictionAPI"; "" for a pod that nothing has taken away.
std::string Disruption(const Json& status) {
  for (const Json& condition : At(status, "conditions"))
    if (TextAt(condition, "type") == "DisruptionTarget" && TextAt(condition, "status") == "True")
      return ReasonAndMessage(condition);
  for (const char* reason : {"Evicted", "NodeLost", "NodeShutdown", "Terminated", "Preempting", "Shutdown"})
    if (TextAt(status, "reason") == reason) return reason;
  return "";
}

bool HasCondition(const Json& status, const char* type, const char* value) {
  for (const Json& condition : At(status, "conditions"))
    if (TextAt(condition, "type") == type && TextAt(condition, "status") == value) return true;
  return false;
}

// A control plane that misses a node has its pods as not ready, and leaves what the node has last said of their
// containers.
bool IsOnLostNode(const Json& status) {
  return TextAt(status, "reason") == "NodeLost" || TextAt(status, "phase") == "Unknown" ||
         (HasCondition(status, "Ready", "False") && HasCondition(status, "ContainersReady", "True") &&
          TextAt(status, "phase") == "Running");
}

PodFacts FactsOf(const Json& pod) {
  const Json& metadata = At(pod, "metadata");
  const Json& labels = At(metadata, "labels");
  const Json& status = At(pod, "status");
  const std::string phase = TextAt(status, "phase");
  PodFacts facts{.job = TextAt(labels, kJobLabel),
                 .host = TextAt(labels, kHostLabel),
                 .is_supervisor = TextAt(labels, kPartLabel) == kSupervisorPart,
                 .is_again = !TextAt(labels, kAgainLabel).empty(),
                 .succeeded = phase == "Succeeded",
                 .being_deleted = At(metadata, "deletionTimestamp").is_string()};
  if (phase == "Running") {
    facts.phase = JobPhase::kRuns;
  } else if (phase == "Succeeded" || phase == "Failed") {
    facts.phase = JobPhase::kEnded;
    facts.text = HowItEnded(pod);
    facts.exit_code = ExitCodeIn(status);
    facts.over_memory = absl::StartsWith(facts.text, kOverMemory);
  } else {
    facts.text = phase == "Pending" || phase.empty() ? WhyWaiting(pod) : phase;
    facts.stuck = IsStuckReason(facts.text);
    facts.hopeless = IsHopeless(facts.text);
    facts.lacks_image = LacksImage(facts.text);
  }
  int64_t seconds = 0;
  if (absl::SimpleAtoi(TextAt(At(metadata, "annotations"), kStartTimeoutAnnotation), &seconds))
    facts.start_timeout = absl::Seconds(seconds);
  const std::string disruption = Disruption(status);
  facts.disrupted = !disruption.empty();
  facts.lost = IsOnLostNode(status);
  if (facts.disrupted && !absl::StrContains(facts.text, disruption))
    absl::StrAppend(&facts.text, facts.text.empty() ? "" : "; ", disruption);
  return facts;
}

// A state alone, as ContainerCreating, passes by.
bool SaysWhy(const PodFacts* pod) { return absl::StrContains(pod->text, ": "); }

// "the supervisor: Unschedulable: …; h1, h2: …; and 5 others"
std::string TextOf(const std::vector<const PodFacts*>& pods) {
  std::string text, last;
  for (size_t i = 0; i < std::min(pods.size(), kPodsNamed); ++i) {
    const PodFacts& pod = *pods[i];
    const std::string name = pod.is_supervisor ? "the supervisor" : pod.host;
    const std::string its = pod.text.empty() && pod.being_deleted ? "it is being deleted" : pod.text;
    const bool is_same = i > 0 && SaysWhy(&pod) && its == last;
    if (is_same) text.resize(text.size() - last.size() - 2);
    absl::StrAppend(&text, is_same ? ", " : i > 0 ? "; " : "", name, ": ", its);
    last = its;
  }
  if (pods.size() > kPodsNamed) absl::StrAppend(&text, "; and ", pods.size() - kPodsNamed, " others");
  return text;
}

// Which pods have a reason, and how many, changes by itself: only another reason is news.
std::string LastingOf(const std::vector<const PodFacts*>& waiting) {
  std::set<std::string> reasons;
  for (const PodFacts* pod : waiting)
    if (SaysWhy(pod)) reasons.insert(pod->text);
  return absl::StrJoin(reasons, "; ");
}

JobNews NewsOf(const std::vector<const PodFacts*>& pods) {
  const auto is_supervisor = [](const PodFacts* pod) { return pod->is_supervisor; };
  const auto supervisor = std::find_if(pods.begin(), pods.end(), is_supervisor);
  if (supervisor == pods.end())
    return {.phase = JobPhase::kEnded, .text = "the supervisor's pod is gone", .taken_away = true};
  const PodFacts& its = **supervisor;
  if (its.phase == JobPhase::kEnded)
    return {.phase = JobPhase::kEnded,
            .text = absl::StrCat("the supervisor's pod: ", its.text),
            .taken_away = its.disrupted,
            .exit_code = its.exit_code};
  std::vector<const PodFacts*> waiting, gone;
  for (const PodFacts* pod : pods) {
    if (pod->phase == JobPhase::kWaits && !pod->is_again && !pod->being_deleted) waiting.push_back(pod);
    if (pod->phase == JobPhase::kEnded && !pod->succeeded) gone.push_back(pod);
  }
  JobNews news{.phase = waiting.empty() ? JobPhase::kRuns : JobPhase::kWaits};
  news.in_part = !waiting.empty() && its.phase == JobPhase::kRuns;
  news.stuck = std::any_of(waiting.begin(), waiting.end(), [](const PodFacts* pod) { return pod->stuck; });
  news.hopeless = std::any_of(waiting.begin(), waiting.end(), [](const PodFacts* pod) { return pod->hopeless; });
  news.lasting = LastingOf(waiting);
  news.ending = its.being_deleted || its.disrupted;
  if (news.ending) news.reason = its.disrupted ? its.text : "somebody has deleted its supervisor's pod";
  news.cancelled = its.being_deleted && !its.disrupted;
  const auto runs = [](const PodFacts* pod) { return pod->phase == JobPhase::kRuns && !pod->being_deleted; };
  if (!news.ending && std::any_of(waiting.begin(), waiting.end(), SaysWhy)) news.reason = TextOf(waiting);
  if (!waiting.empty())
    news.text = absl::StrCat(std::count_if(pods.begin(), pods.end(), runs), " of ", pods.size(), " pods run; ",
                             TextOf(waiting));
  else
    news.text = gone.empty() ? "Running" : TextOf(gone);
  if (!news.ending && waiting.empty() && !gone.empty()) news.reason = news.text;
  return news;
}

}  // namespace

absl::StatusOr<PodPage> ParsePods(std::string_view list) {
  const Json parsed = Json::parse(list, nullptr, /*allow_exceptions=*/false);
  const Json& items = At(parsed, "items");
  if (!items.is_array()) return absl::UnavailableError("kubectl has answered something else than a list of pods");
  PodPage page{.pods = {}, .next = TextAt(At(parsed, "metadata"), "continue")};
  for (const Json& item : items) page.pods.push_back(FactsOf(item));
  return page;
}

void ImageTroubles::SteadyWords(std::vector<PodFacts>& pods) {
  for (PodFacts& pod : pods) {
    if (pod.phase != JobPhase::kWaits) continue;
    const std::string key = absl::StrCat(pod.job, "/", pod.host);
    if (!pod.lacks_image) {
      words_.erase(key);
      continue;
    }
    Words& known = words_[key];
    const bool says_more = known.text.empty() || pod.stuck > known.stuck ||
                           (IsFailedPull(pod.text) && !IsFailedPull(known.text) && pod.stuck == known.stuck);
    if (says_more) known = {.stuck = pod.stuck, .text = pod.text};
    pod.stuck = known.stuck;
    pod.text = known.text;
  }
}

std::map<std::string, JobNews> NewsOfPods(const std::vector<PodFacts>& pods) {
  std::map<std::string, std::vector<const PodFacts*>> jobs;
  for (const PodFacts& pod : pods) jobs[pod.job].push_back(&pod);
  std::map<std::string, JobNews> news;
  for (const auto& [job, its] : jobs) news[job] = NewsOf(its);
  return news;
}

}  // namespace muster
