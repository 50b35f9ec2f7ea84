#include "muster/launch/engines/kubernetes/pod_again.h"

#include <gmock/gmock.h>

#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/engines/kubernetes/cluster_api.h"

namespace muster::pod_again_test {
namespace {

using ::testing::HasSubstr;

constexpr char kPattern[] = R"({"metadata": {"name": "j-h0", "labels": {"muster/job": "j", "muster/host": "h0"}},
                                "spec": {"hostname": "h0", "subdomain": "j"}})";

TEST(PodAgainTest, TakesThePlaceOfThoseThatHaveEnded) {
  const auto pod = PodInThePlaceOf(R"({"items": [
      {"metadata": {"labels": {"muster/job": "j"}}, "status": {"phase": "Failed"}},
      {"metadata": {"labels": {"muster/job": "j", "muster/again": "2"}, "deletionTimestamp": "now"},
       "status": {"phase": "Running"}}]})",
                                   kPattern, "h1");
  ASSERT_TRUE(pod.ok()) << pod.status();
  ASSERT_TRUE(pod->has_value());
  EXPECT_EQ((*pod)->dump(), R"({"metadata":{"name":"j-h1-3","labels":{"muster/job":"j","muster/host":"h1",)"
                            R"("muster/again":"3"}},"spec":{"hostname":"h1","subdomain":"j"}})");
  EXPECT_EQ((*PodInThePlaceOf(R"({"items": []})", kPattern, "h1"))->at("metadata").at("name"), "j-h1-1");
}

TEST(PodAgainTest, OneThatRunsOrIsAboutToStays) {
  for (const char* phase : {"Running", "Pending"}) {
    const auto pod = PodInThePlaceOf(
        std::string(R"({"items": [{"metadata": {"labels": {}}, "status": {"phase": ")") + phase + "\"}}]}", kPattern,
        "h1");
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_FALSE(pod->has_value()) << phase;
  }
}

TEST(PodAgainTest, OneOnANodeThatIsntHeardDoesntCount) {
  const auto is_made = [](const std::string& status) {
    return (*PodInThePlaceOf(R"({"items": [{"metadata": {"labels": {}}, "status": )" + status + "}]}", kPattern, "h1"))
        .has_value();
  };
  EXPECT_TRUE(is_made(R"({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"},
                          {"type": "ContainersReady", "status": "True"}]})"));
  EXPECT_TRUE(is_made(R"({"phase": "Running", "reason": "NodeLost"})"));
  EXPECT_TRUE(is_made(R"({"phase": "Unknown"})"));
  // Another container of the pod isn't ready.
  EXPECT_FALSE(is_made(R"({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"},
                           {"type": "ContainersReady", "status": "False"}]})"));
  EXPECT_FALSE(is_made(R"({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"},
                           {"type": "ContainersReady", "status": "True"}]})"));
}

TEST(PodAgainTest, OneThatNeedsMoreMemoryIsMadeAgainOnce) {
  const std::string over = R"({"metadata": {"labels": {"muster/job": "j"}}, "spec": {"containers":
      [{"name": "muster", "resources": {"limits": {"memory": "2Gi"}}}]}, "status": {"phase": "Failed",
      "containerStatuses": [{"name": "muster", "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}})";
  const std::string failed = R"({"metadata": {"labels": {"muster/job": "j"}}, "status": {"phase": "Failed"}})";
  const auto again = [&](const std::string& pods) {
    return PodInThePlaceOf("{\"items\": [" + pods + "]}", kPattern, "h1");
  };
  EXPECT_TRUE(again(over + "," + failed + "," + failed).ok());
  EXPECT_EQ(
      again(over + "," + failed + "," + over).status().message(),
      "it has ended so 2 times: OOMKilled: it used more than the memory limit of its pod, 2Gi; state more mem for "
      "the tasks");
}

TEST(PodAgainTest, AnythingElseIsAnError) {
  EXPECT_FALSE(PodInThePlaceOf("", kPattern, "h1").ok());
  EXPECT_FALSE(PodInThePlaceOf(R"({"items": []})", "{}", "h1").ok());
  EXPECT_FALSE(PodInThePlaceOf(R"({"items": []})", "", "h1").ok());
}

TEST(ApiAnswerTest, HasABodyOrARefusalInTheApisWords) {
  EXPECT_EQ(*ParseApiAnswer("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{}"), "{}");
  const absl::Status refused =
      ParseApiAnswer("HTTP/1.0 403 Forbidden\r\n\r\n{\"message\": \"pods is forbidden: User u\"}").status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("refuses it (403): pods is forbidden: User u"));
  EXPECT_TRUE(absl::IsAlreadyExists(ParseApiAnswer("HTTP/1.1 409 Conflict\r\n\r\n").status()));
  EXPECT_TRUE(absl::IsUnavailable(ParseApiAnswer("HTTP/1.1 503 No\r\n\r\nlater").status()));
  for (const char* answer : {"", "SSH-2.0", "HTTP/1.1 2x\r\n\r\n", "HTTP/1.1 200 OK\r\n"})
    EXPECT_TRUE(absl::IsUnavailable(ParseApiAnswer(answer).status())) << answer;
}

TEST(ClusterApiTest, APodIsToldWhereItIs) {
  const ScratchFolder scratch;
  const std::vector<std::string> environment = {"KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=6443"};
  EXPECT_TRUE(absl::IsNotFound(ClusterApiOfPod(environment, scratch.path()).status()));
  scratch.Write("token", "t0ken\n");
  scratch.Write("namespace", "team");
  const auto api = ClusterApiOfPod(environment, scratch.path());
  ASSERT_TRUE(api.ok()) << api.status();
  EXPECT_EQ(api->host, "10.0.0.1");
  EXPECT_EQ(api->port, 6443);
  EXPECT_EQ(api->token, "t0ken");
  EXPECT_TRUE(absl::IsNotFound(ClusterApiOfPod({}, scratch.path()).status()));
}

}  // namespace
}  // namespace muster::pod_again_test
