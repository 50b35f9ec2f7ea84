#include "muster/launch/engines/kubernetes/own_pod.h"

#include <gmock/gmock.h>

#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/engines/kubernetes/kubernetes_jobs.h"
#include "muster/launch/jobs/job_ending.h"

namespace muster::own_pod_test {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string>& EnvironmentOfPod() {
  static const auto* const kVariables = new std::vector<std::string>{
      "MUSTER_KUBERNETES_JOB=muster-1-ab", "MUSTER_KUBERNETES_RUN=ab",          "MUSTER_KUBERNETES_PODS=2",
      "MUSTER_KUBERNETES_PORT=1",          "MUSTER_KUBERNETES_START_TIMEOUT=1", "MUSTER_KUBERNETES_ENDING=1"};
  return *kVariables;
}

TEST(OwnPodTest, AnEndThatMusterHasAskedForIsACancellation) {
  const ScratchFolder scratch;
  scratch.Write("asked", "");
  EXPECT_TRUE(NewsOfOwnPod(EnvironmentOfPod(), scratch / "asked").cancelled);
  EXPECT_FALSE(NewsOfOwnPod(EnvironmentOfPod(), scratch / "absent").cancelled);
}

TEST(OwnPodTest, ASignalAloneIsAnEndByKubernetes) {
  KubernetesJobs jobs("", EnvironmentOfPod());
  EXPECT_FALSE(jobs.TermsOf({}).signal_cancels);
  const EndingOfJob ending = EndingOf(jobs, *jobs.Own(), RealClock(), [](absl::Duration) { FAIL() << "it is known"; });
  EXPECT_EQ(ending.what, EndingOfJob::What::kEnded);
  EXPECT_THAT(ending.reason, HasSubstr("was told to end, as by a drain"));
}

}  // namespace
}  // namespace muster::own_pod_test
