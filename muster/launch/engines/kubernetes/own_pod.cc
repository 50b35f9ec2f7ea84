#include "muster/launch/engines/kubernetes/own_pod.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/engines/kubernetes/cluster_api.h"
#include "muster/launch/engines/kubernetes/pod_job.h"
#include "muster/launch/engines/kubernetes/pod_news.h"
#include "muster/launch/engines/kubernetes/pod_variables.h"

namespace muster {
namespace {

constexpr absl::Duration kOwnPodPatience = absl::Seconds(3);  // of the pod's grace

// Returns the news as anybody with kubectl has them.
absl::StatusOr<JobNews> AskApiAboutOwnPod(const std::vector<std::string>& environment) {
  ASSIGN_OR_RETURN(const PodVariables own, ReadPodVariables(environment));
  if (!own.may_ask_api) return absl::PermissionDeniedError("the job has no service account");
  ASSIGN_OR_RETURN(const ClusterApi api, ClusterApiOfPod(environment));
  // Both labels' slashes and equals signs, and the comma, as a query has them. The other pods, which may be thousands,
  // say nothing about this one.
  const std::string path = absl::StrCat("/api/v1/namespaces/", api.name_space, "/pods?labelSelector=muster%2Fjob%3D",
                                        own.job, "%2Cmuster%2Fpart%3D", kSupervisorPart);
  ASSIGN_OR_RETURN(const std::string list, CallClusterApi(api, {.path = path}, kOwnPodPatience));
  ASSIGN_OR_RETURN(const PodPage page, ParsePods(list));
  return NewsOfPods(page.pods)[own.job];
}

}  // namespace

JobNews NewsOfOwnPod(const std::vector<std::string>& environment, const std::string& asked_file) {
  JobNews news{.phase = JobPhase::kRuns, .text = "Running", .ending = true};
  if (PosixFileSystem().Exists(asked_file)) {
    news.cancelled = true;
    return news;
  }
  if (const auto told = AskApiAboutOwnPod(environment); told.ok() && told->ending) return *told;
  news.reason = "its supervisor's pod was told to end, as by a drain, an eviction or kubectl delete";
  return news;
}

}  // namespace muster
