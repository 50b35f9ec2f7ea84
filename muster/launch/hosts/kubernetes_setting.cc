#include "muster/launch/hosts/kubernetes_setting.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/hosts/pod_template_check.h"
#include "muster/launch/hosts/wait_text.h"
#include "muster/launch/task/resources.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int kMostPods = 10000;
constexpr absl::Duration kLeastStart = absl::Seconds(10);
constexpr absl::Duration kLeastPause = absl::Seconds(1);
constexpr absl::Duration kMostWait = absl::Hours(24 * 30);

struct GangName {
  const char* name;
  PodGang gang;
};
constexpr GangName kGangs[] = {{"none", PodGang::kNone},
                               {"kueue", PodGang::kKueue},
                               {"volcano", PodGang::kVolcano},
                               {"coscheduling", PodGang::kCoscheduling}};

absl::Status NotTaken(const std::string& name, const std::string& value, std::string_view accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is '", OneLine(value, 200), "'; accepted: ", AbslView(accepted)));
}

bool IsWord(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '"' && c != '\'' && c != '\\';
  });
}

absl::Status TakeWord(std::string& into, const std::string& name, const std::optional<std::string>& value,
                      std::string_view accepted) {
  if (value.has_value() && !IsWord(*value)) return NotTaken(name, *value, accepted);
  into = value.value_or("");
  return absl::OkStatus();
}

absl::Status TakeMap(std::map<std::string, std::string>& into, const std::string& name,
                     const std::optional<std::string>& value) {
  into.clear();
  if (!value.has_value()) return absl::OkStatus();
  const Json object = Json::parse(*value, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return NotTaken(name, *value, absl::StrCat("a map from names to texts, or ", name, ".NAME"));
  for (const auto& [key, item] : object.items()) {
    if (item.is_object() || item.is_array() || item.is_null())
      return NotTaken(absl::StrCat(name, ".", key), item.dump(), "a text");
    into[key] = item.is_string() ? item.get<std::string>() : item.dump();
  }
  return absl::OkStatus();
}

// "A,B", or a list in JSON.
absl::Status TakeList(std::vector<std::string>& into, const std::string& name, const std::optional<std::string>& value,
                      std::string_view accepted) {
  into.clear();
  if (!value.has_value()) return absl::OkStatus();
  const Json list = Json::parse(*value, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) {
    into = absl::StrSplit(*value, ',');
  } else {
    for (const Json& item : list) into.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  }
  if (std::all_of(into.begin(), into.end(), IsWord)) return absl::OkStatus();
  into.clear();
  return NotTaken(name, *value, accepted);
}

absl::Status TakeClaims(KubernetesSetting& kubernetes, const std::optional<std::string>& value) {
  constexpr char kClaimForms[] = "a list of NAME:PATH, a PersistentVolumeClaim and where the tasks see it";
  std::vector<std::string> words;
  kubernetes.claims.clear();
  if (const absl::Status taken = TakeList(words, "claims", value, kClaimForms); !taken.ok()) return taken;
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> claim = absl::StrSplit(word, absl::MaxSplits(':', 1));
    if (claim.first.empty() || !absl::StartsWith(claim.second, "/") || claim.second == "/")
      return NotTaken("claims", word, kClaimForms);
    kubernetes.claims.push_back(claim);
  }
  return absl::OkStatus();
}

absl::Status TakeJson(std::string& into, const std::string& name, const std::optional<std::string>& value, bool list) {
  into.clear();
  if (!value.has_value()) return absl::OkStatus();
  const Json parsed = Json::parse(*value, nullptr, /*allow_exceptions=*/false);
  if (list ? !parsed.is_array() : !parsed.is_object())
    return NotTaken(name, *value,
                    list ? "a list of tolerations, as a pod has it, in JSON on the command line"
                         : "a map with metadata and spec of a pod, in JSON on the command line");
  into = parsed.dump();
  return absl::OkStatus();
}

absl::Status TakeWait(absl::Duration& into, const std::string& name, const std::optional<std::string>& value,
                      absl::Duration usual, absl::Duration least) {
  into = usual;
  if (!value.has_value()) return absl::OkStatus();
  const std::optional<absl::Duration> wait = ParseWait(*value, least, kMostWait);
  if (!wait.has_value())
    return NotTaken(name, *value,
                    absl::StrCat("a time from ", absl::FormatDuration(least), ", as 10m, 24h or seconds"));
  into = *wait;
  return absl::OkStatus();
}

bool IsDnsLabel(const std::string& text) {
  const auto is_plain = [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) || absl::ascii_isdigit(static_cast<unsigned char>(c));
  };
  return !text.empty() && text.size() <= 63 && is_plain(text.front()) && is_plain(text.back()) &&
         std::all_of(text.begin(), text.end(), [&is_plain](char c) { return c == '-' || is_plain(c); });
}

absl::Status TakeNodes(int& nodes, const std::optional<std::string>& value) {
  const std::string number = value.value_or("1");
  if (absl::SimpleAtoi(number, &nodes) && nodes >= 1 && nodes <= kMostPods) return absl::OkStatus();
  return NotTaken("nodes", number, "a whole number from 1");
}

absl::Status TakeTries(std::optional<int>& tries, const std::optional<std::string>& value) {
  tries.reset();
  int number = 0;
  if (!value.has_value() || (absl::SimpleAtoi(*value, &number) && number >= 1)) {
    if (value.has_value()) tries = number;
    return absl::OkStatus();
  }
  return NotTaken("start_tries", *value, "a whole number from 1");
}

absl::Status TakeGang(PodGang& gang, const std::optional<std::string>& value) {
  for (const GangName& one : kGangs) {
    if (value.value_or("none") != one.name) continue;
    gang = one.gang;
    return absl::OkStatus();
  }
  return NotTaken("gang", *value, "none, kueue, volcano or coscheduling");
}

absl::Status TakeShm(std::optional<int64_t>& shm, const std::optional<std::string>& value) {
  shm.reset();
  if (!value.has_value()) return absl::OkStatus();
  const auto bytes = *value == "0" ? absl::StatusOr<int64_t>(0) : ParseMemory(*value, nullptr);
  if (!bytes.ok()) return NotTaken("shm", *value, kMemoryForms);
  shm = *bytes;
  return absl::OkStatus();
}

// A key of a map.
absl::Status TakeKey(KubernetesSetting& kubernetes, const std::string& name, const std::optional<std::string>& value,
                     bool& is_key) {
  struct NamedMap {
    const char* name;
    std::map<std::string, std::string>& map;
  };
  const NamedMap maps[] = {{"node_selector", kubernetes.node_selector},
                           {"annotations", kubernetes.annotations},
                           {"labels", kubernetes.labels}};
  for (const NamedMap& one : maps) {
    is_key = true;
    if (name == one.name) return TakeMap(one.map, name, value);
    const std::string beginning = absl::StrCat(one.name, ".");
    if (!absl::StartsWith(name, beginning)) continue;
    if (value.has_value())
      one.map[name.substr(beginning.size())] = *value;
    else
      one.map.erase(name.substr(beginning.size()));
    return absl::OkStatus();
  }
  is_key = false;
  return absl::OkStatus();
}

// muster's own labels are how it finds and deletes a job's pods.
absl::Status CheckLabels(const KubernetesSetting& kubernetes) {
  for (const auto& [key, value] : kubernetes.labels)
    if (absl::StartsWith(key, "muster/"))
      return absl::InvalidArgumentError(
          absl::StrCat("kubernetes: labels: '", OneLine(key),
                       "' is muster's own, by which it finds its pods; accepted: names that don't begin with muster/"));
  return absl::OkStatus();
}

// Those that are one word. Returns nullptr for another name.
std::string* WordOf(KubernetesSetting& kubernetes, const std::string& name) {
  if (name == "image") return &kubernetes.image;
  if (name == "kubectl") return &kubernetes.kubectl;
  if (name == "context") return &kubernetes.context;
  if (name == "namespace") return &kubernetes.name_space;
  if (name == "muster") return &kubernetes.muster;
  if (name == "gpu_resource") return &kubernetes.gpu_resource;
  if (name == "service_account") return &kubernetes.service_account;
  if (name == "queue") return &kubernetes.queue;
  if (name == "scheduler") return &kubernetes.scheduler;
  return nullptr;
}

}  // namespace

std::string PodGangText(PodGang gang) {
  for (const GangName& one : kGangs)
    if (one.gang == gang) return one.name;
  return "";
}

absl::Status TakeKubernetesSetting(KubernetesSetting& kubernetes, const std::string& name,
                                   const std::optional<std::string>& value) {
  if (name == "namespace" && value.has_value() && !IsDnsLabel(*value))
    return NotTaken(name, *value, "a name of lower-case letters, digits and '-', at most 63");
  if (std::string* const word = WordOf(kubernetes, name); word != nullptr)
    return TakeWord(*word, name, value, name == "image" ? "an image, as registry.example/team/train:1" : "one word");
  bool is_key = false;
  if (const absl::Status taken = TakeKey(kubernetes, name, value, is_key); is_key) return taken;
  if (name == "nodes") return TakeNodes(kubernetes.nodes, value);
  if (name == "gang") return TakeGang(kubernetes.gang, value);
  if (name == "shm") return TakeShm(kubernetes.shm_bytes, value);
  if (name == "claims") return TakeClaims(kubernetes, value);
  if (name == "image_pull_secrets")
    return TakeList(kubernetes.image_pull_secrets, name, value, "a list of names of Secrets");
  if (name == "tolerations") return TakeJson(kubernetes.tolerations, name, value, /*list=*/true);
  if (name == "pod_template") return TakeJson(kubernetes.pod_template, name, value, /*list=*/false);
  const KubernetesSetting usual;
  if (name == "start_timeout") return TakeWait(kubernetes.start_timeout, name, value, usual.start_timeout, kLeastStart);
  if (name == "start_tries") return TakeTries(kubernetes.start_tries, value);
  if (name == "start_pause") return TakeWait(kubernetes.start_pause, name, value, usual.start_pause, kLeastPause);
  if (name == "keep") return TakeWait(kubernetes.keep, name, value, usual.keep, absl::ZeroDuration());
  const std::vector<std::string> names = {"nodes",        "image",          "context",
                                          "namespace",    "kubectl",        "muster",
                                          "gpu_resource", "claims",         "labels",
                                          "annotations",  "queue",          "gang",
                                          "shm",          "node_selector",  "keep",
                                          "scheduler",    "start_timeout",  "tolerations",
                                          "start_tries",  "start_pause",    "image_pull_secrets",
                                          "pod_template", "service_account"};
  std::string accepted;
  for (const std::string& one : names) absl::StrAppend(&accepted, accepted.empty() ? "" : ", ", one);
  return absl::InvalidArgumentError(
      absl::StrCat("'", OneLine(name), "' is unknown", NearestHint(name, names), "; accepted: ", accepted));
}

absl::Status CheckKubernetesSetting(const KubernetesSetting& kubernetes) {
  if (kubernetes.image.empty())
    return absl::InvalidArgumentError(
        "on kubernetes: in which image? accepted: `kubernetes: {image: …}` in the experiment file, or --kubernetes "
        "image=…; the image must have muster and what the program needs");
  if (kubernetes.gang == PodGang::kKueue && kubernetes.queue.empty())
    return absl::InvalidArgumentError(
        "kubernetes: gang: kueue needs a queue; accepted: queue: NAME, a LocalQueue of the namespace");
  if (!kubernetes.queue.empty() && kubernetes.gang != PodGang::kKueue && kubernetes.gang != PodGang::kVolcano)
    return absl::InvalidArgumentError("kubernetes: queue is accepted with gang: kueue or gang: volcano only");
  if (const absl::Status taken = CheckLabels(kubernetes); !taken.ok()) return taken;
  return CheckPodTemplate(kubernetes.pod_template);
}

}  // namespace muster
