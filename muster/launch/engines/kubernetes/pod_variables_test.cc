#include "muster/launch/engines/kubernetes/pod_variables.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace muster::pod_variables_test {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Environment(const PodVariables& pod) {
  std::vector<std::string> environment = {"PATH=/bin"};
  for (const auto& [name, value] : pod.List()) environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

TEST(PodVariablesTest, AreReadAsTheyAreWritten) {
  const PodVariables pod{.job = "muster-1-ab",
                         .at = R"({"context": "c"})",
                         .run = "ab",
                         .pods = 3,
                         .port = 6464,
                         .start_timeout = absl::Minutes(2),
                         .ending = absl::Seconds(25),
                         .may_ask_api = true};
  const auto read = ReadPodVariables(Environment(pod));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->List(), pod.List());
  EXPECT_EQ(read->start_timeout, absl::Minutes(2));
  EXPECT_TRUE(read->may_ask_api);
  EXPECT_EQ(HostOfPod(2), "h2");
}

TEST(PodVariablesTest, WithoutThemThisIsNoPodOfAJob) {
  EXPECT_TRUE(absl::IsNotFound(ReadPodVariables({"PATH=/bin"}).status()));
  PodVariables pod{.job = "j", .run = "r", .port = 1};
  pod.pods = 0;
  const absl::Status bad = ReadPodVariables(Environment(pod)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(bad));
  EXPECT_THAT(std::string(bad.message()), HasSubstr("MUSTER_KUBERNETES_PODS is '0'"));
}

}  // namespace
}  // namespace muster::pod_variables_test
