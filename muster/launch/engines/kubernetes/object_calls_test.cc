#include "muster/launch/engines/kubernetes/object_calls.h"

#include <gmock/gmock.h>

#include <string>

#include "muster/launch/engines/kubernetes/pod_job.h"

namespace muster::object_calls_test {
namespace {

using ::testing::ElementsAre, ::testing::SizeIs;

std::string ManifestOf(int nodes) {
  PodJob job{.request = {.experiment = "1", .project = "toy"}, .suffix = "8c1f2a3b"};
  job.request.setting.kubernetes = KubernetesSetting{.nodes = nodes, .image = "a"};
  return PodJobText(job);
}

// The pods of the agents, the supervisor's, the Secret and the Service.
TEST(ObjectCallsTest, ObjectsOfAJobAreCounted) {
  EXPECT_EQ(ObjectsIn(ManifestOf(1)), 4U);
  EXPECT_EQ(ObjectsIn(ManifestOf(500)), 503U);
  const auto job = ParsePodJob(ManifestOf(500));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(ObjectsIn(job->supervisor), 1U);
  EXPECT_EQ(ObjectsIn(job->others), 502U);
}

// Half a second for each: 10000 pods are sent for minutes.
TEST(ObjectCallsTest, PatienceGrowsWithThePods) {
  EXPECT_EQ(TryCall(ManifestOf(1)).patience, absl::Seconds(22));
  EXPECT_EQ(TryCall(ManifestOf(997)).patience, absl::Seconds(20 + 500));
  EXPECT_EQ(CreateCall(ManifestOf(1), "name").patience, absl::Seconds(122));
  EXPECT_EQ(CreateCall(ManifestOf(997), "name").patience, absl::Seconds(120 + 500));
  EXPECT_EQ(DeleteCalls("a", 2, /*at_once=*/true)[0].patience, absl::Seconds(121));
  EXPECT_EQ(DeleteCalls("a", 10000, /*at_once=*/true)[0].patience, absl::Seconds(120 + 5000));
}

TEST(ObjectCallsTest, SayWhatIsMadeAndTakenAway) {
  const KubectlCall tried = TryCall(ManifestOf(2));
  EXPECT_THAT(tried.words, ElementsAre("create", "--dry-run=server", "--output=name", "--filename=-"));
  EXPECT_EQ(tried.input, ManifestOf(2));
  const KubectlCall created = CreateCall("a: b\n", "json");
  EXPECT_THAT(created.words, ElementsAre("create", "--output=json", "--filename=-"));
  EXPECT_EQ(created.input, "a: b\n");
  const std::vector<KubectlCall> deleted = DeleteCalls("a", 3, /*at_once=*/false);
  ASSERT_THAT(deleted, SizeIs(2));
  EXPECT_THAT(deleted[0].words,
              ElementsAre("delete", "pods", "--selector=muster/job=a", "--ignore-not-found", "--wait=false"));
  EXPECT_THAT(deleted[1].words, ElementsAre("delete", "services/a", "secrets/a", "--ignore-not-found", "--wait=false"));
}

TEST(ObjectCallsTest, PodsAreReadInPagesWhichHaveTheSamePatienceEach) {
  const KubectlCall first = PodPageCall("team", {"a-1", "b"}, "");
  EXPECT_THAT(first.words, ElementsAre("get",
                                       "--raw=/api/v1/namespaces/team/pods?limit=500&labelSelector="
                                       "muster%2fjob%20in%20%28a-1%2cb%29"));
  EXPECT_EQ(first.patience, absl::Seconds(10));
  EXPECT_THAT(PodPageCall("team", {"a"}, "x/+=_-").words,
              ElementsAre("get",
                          "--raw=/api/v1/namespaces/team/pods?limit=500&labelSelector=muster%2fjob%20in%20%28a%29"
                          "&continue=x%2f%2b%3d_-"));
}

}  // namespace
}  // namespace muster::object_calls_test
