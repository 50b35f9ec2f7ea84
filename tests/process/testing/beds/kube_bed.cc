#include "tests/process/testing/beds/kube_bed.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/testing/built_at.h"

namespace muster {
namespace {

constexpr absl::Duration kClaimPatience = absl::Minutes(1);
constexpr absl::Duration kLeftPatience = absl::Minutes(1);
// What a job keeps for the next ones with the same content, in the pod of its supervisor.
constexpr char kBuildsOfPod[] = "/muster/home/builds";
constexpr char kJobObjects[] = "pods,services,secrets";
constexpr char kOfJobs[] = "--selector=muster/job";

}  // namespace

KubeBed::KubeBed() {
  MakeClaim("seen");
  MakeClaim("builds");
}

void KubeBed::MakeClaim(const std::string& name) {
  cluster_.Apply(absl::StrCat(R"({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": ")", name,
                              R"("}, "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": )",
                              R"({"storage": "1Gi"}}}})"));
  std::string volume;
  for (const absl::Time give_up = absl::Now() + kClaimPatience; volume.empty() && absl::Now() < give_up;)
    volume = cluster_.Ask({"get", "persistentvolumeclaim", name, "--output=jsonpath={.spec.volumeName}"});
  EXPECT_NE(volume, "") << name;
  folders_[name] = absl::StrCat(hosts_.shared(), "/kube/claims/", volume);
}

std::string KubeBed::FolderOf(const std::string& claim) const { return folders_.at(claim); }

std::vector<std::string> KubeBed::OnH0(const std::vector<std::string>& words, const std::string& /*index*/) {
  return cluster_.OnH0(words);
}

// The volumes are those of all pods, as `install` runs in the supervisor's.
std::string KubeBed::Lines(const Place& place) {
  const std::string seen = FolderOf("seen");
  std::string volumes = "{name: seen, persistentVolumeClaim: {claimName: seen}}";
  std::string mounts = absl::StrCat("{name: seen, mountPath: ", seen, "}");
  // The tasks and the supervisor find programs that tests write.
  std::string variables = absl::StrCat("{name: PATH, value: \"", seen, "/aside/bin:/usr/local/bin:/usr/bin:/bin\"}");
  if (!place.kept.empty()) {
    absl::StrAppend(&volumes, ", {name: builds, persistentVolumeClaim: {claimName: builds}}");
    absl::StrAppend(&mounts, ", {name: builds, mountPath: ", kBuildsOfPod, "}");
    absl::StrAppend(&variables, ", {name: XDG_CACHE_HOME, value: ", place.kept, "/cache}");
  }
  return absl::StrCat("on: kubernetes\nkubernetes:\n  image: any\n  nodes: ", place.hosts.size(),
                      "\n  muster: ", BinFolder(), "/muster\n  pod_template:\n    spec:\n      volumes: [", volumes,
                      "]\n      containers: [{name: muster, env: [", variables, "], volumeMounts: [", mounts, "]}]\n");
}

void KubeBed::AwaitNothingLeft() {
  std::string left = "unknown";
  for (const absl::Time give_up = absl::Now() + kLeftPatience; !left.empty() && absl::Now() < give_up;)
    left = cluster_.Ask({"get", kJobObjects, kOfJobs, "--output=name"});
  EXPECT_EQ(left, "");
  // It isn't to fail the next tests, too.
  if (!left.empty()) cluster_.Ask({"delete", kJobObjects, kOfJobs, "--grace-period=0", "--force"});
  for (const std::string& host : hosts_.names()) cluster_.AwaitNothingElseOn(host);
}

}  // namespace muster
