#include "muster/launch/engines/kubernetes/pod_again.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/engines/kubernetes/cluster_api.h"
#include "muster/launch/engines/kubernetes/pod_job.h"
#include "muster/launch/engines/kubernetes/pod_news.h"
#include "muster/launch/engines/kubernetes/pod_variables.h"

namespace muster {
namespace {

constexpr absl::Duration kApiPatience = absl::Seconds(20);
constexpr int kMostOverMemory = 2;  // pods of a host; likewise a task that runs out of memory is started once more

// Returns how many pods were lost before the newest one, and 0 for none.
int MostAgain(const OrderedJson& list) {
  int most = 0;
  for (const OrderedJson& pod : list.at("items")) {
    const OrderedJson& labels = pod.at("metadata").at("labels");
    int again = 0;
    if (labels.contains(kAgainLabel) && absl::SimpleAtoi(labels.at(kAgainLabel).get<std::string>(), &again))
      most = std::max(most, again);
  }
  return most;
}

}  // namespace

absl::StatusOr<std::optional<OrderedJson>> PodInThePlaceOf(std::string_view list, std::string_view pattern,
                                                           const std::string& host) {
  ASSIGN_OR_RETURN(const PodPage page, ParsePods(list));
  const std::vector<PodFacts>& pods = page.pods;
  const auto is_alive = [](const PodFacts& pod) {
    return pod.phase != JobPhase::kEnded && !pod.being_deleted && !pod.lost;
  };
  if (std::any_of(pods.begin(), pods.end(), is_alive)) return std::nullopt;
  const auto is_over = [](const PodFacts& pod) { return pod.over_memory; };
  if (std::count_if(pods.begin(), pods.end(), is_over) >= kMostOverMemory)
    return absl::ResourceExhaustedError(absl::StrCat(
        "it has ended so ", kMostOverMemory, " times: ", std::find_if(pods.begin(), pods.end(), is_over)->text));
  try {
    OrderedJson pod = OrderedJson::parse(pattern);
    const int again = MostAgain(OrderedJson::parse(list)) + 1;
    OrderedJson& metadata = pod.at("metadata");
    metadata["name"] = absl::StrCat(metadata.at("labels").at(kJobLabel).get<std::string>(), "-", host, "-", again);
    metadata.at("labels")[kHostLabel] = host;
    metadata.at("labels")[kAgainLabel] = absl::StrCat(again);
    pod.at("spec")["hostname"] = host;
    return pod;
  } catch (const OrderedJson::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("a pod can't be made again from what the job has: ", error.what()));
  }
}

absl::Status MakePodAgain(const std::vector<std::string>& environment, const std::string& host) {
  ASSIGN_OR_RETURN(const PodVariables own, ReadPodVariables(environment));
  ASSIGN_OR_RETURN(const ClusterApi api, ClusterApiOfPod(environment));
  ASSIGN_OR_RETURN(const std::string pattern,
                   PosixFileSystem().ReadFile(absl::StrCat(kSecretFolder, "/", kPodTemplateName)));
  const std::string pods = absl::StrCat("/api/v1/namespaces/", api.name_space, "/pods");
  // Both labels' slashes and equals signs, and the comma, as a query has them.
  const std::string selector = absl::StrCat("muster%2Fjob%3D", own.job, "%2Cmuster%2Fhost%3D", host);
  ASSIGN_OR_RETURN(const std::string list,
                   CallClusterApi(api, {.path = absl::StrCat(pods, "?labelSelector=", selector)}, kApiPatience));
  ASSIGN_OR_RETURN(const std::optional<OrderedJson> pod, PodInThePlaceOf(list, pattern, host));
  if (!pod.has_value()) return absl::OkStatus();
  return CallClusterApi(api, {.method = "POST", .path = pods, .body = pod->dump()}, kApiPatience).status();
}

}  // namespace muster
