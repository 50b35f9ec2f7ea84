#include "muster/launch/hosts/kubernetes_setting.h"

#include <gmock/gmock.h>

namespace muster::kubernetes_setting_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Pair;

class KubernetesSettingTest : public ::testing::Test {
 protected:
  std::string Take(const std::string& name, const std::optional<std::string>& value) {
    return std::string(TakeKubernetesSetting(setting_, name, value).message());
  }

  KubernetesSetting setting_;
};

TEST_F(KubernetesSettingTest, TakesWordsNumbersAndTimes) {
  EXPECT_EQ(Take("nodes", "3"), "");
  EXPECT_EQ(Take("image", "registry.example/a:1"), "");
  EXPECT_EQ(Take("namespace", "team"), "");
  EXPECT_EQ(Take("start_timeout", "90"), "");
  EXPECT_EQ(Take("start_tries", "2"), "");
  EXPECT_EQ(Take("start_pause", "1m"), "");
  EXPECT_EQ(Take("keep", "2h"), "");
  EXPECT_EQ(Take("shm", "1GB"), "");
  EXPECT_EQ(Take("gang", "volcano"), "");
  EXPECT_EQ(setting_.nodes, 3);
  EXPECT_EQ(setting_.image, "registry.example/a:1");
  EXPECT_EQ(setting_.name_space, "team");
  EXPECT_EQ(setting_.start_timeout, absl::Seconds(90));
  EXPECT_EQ(setting_.start_tries, 2);
  EXPECT_EQ(setting_.start_pause, absl::Minutes(1));
  EXPECT_EQ(setting_.keep, absl::Hours(2));
  EXPECT_EQ(setting_.shm_bytes, 1 << 30);
  EXPECT_EQ(PodGangText(setting_.gang), "volcano");
}

TEST_F(KubernetesSettingTest, TakesMapsWholeOrByKey) {
  EXPECT_EQ(Take("node_selector", R"({"disk": "ssd", "zone": 1})"), "");
  EXPECT_EQ(Take("node_selector.zone", std::nullopt), "");
  EXPECT_EQ(Take("annotations.example.org/owner", "me"), "");
  EXPECT_THAT(setting_.node_selector, ElementsAre(Pair("disk", "ssd")));
  EXPECT_THAT(setting_.annotations, ElementsAre(Pair("example.org/owner", "me")));
  EXPECT_THAT(Take("labels", "[1]"), HasSubstr("accepted: a map from names to texts, or labels.NAME"));
  EXPECT_THAT(Take("labels", R"({"a": {}})"), HasSubstr("labels.a is '{}'"));
}

TEST_F(KubernetesSettingTest, TakesListsInJsonOrWithCommas) {
  EXPECT_EQ(Take("claims", "data:/data,models:/m"), "");
  EXPECT_THAT(setting_.claims, ElementsAre(Pair("data", "/data"), Pair("models", "/m")));
  EXPECT_EQ(Take("claims", R"(["data:/data"])"), "");
  EXPECT_THAT(setting_.claims, ElementsAre(Pair("data", "/data")));
  EXPECT_EQ(Take("image_pull_secrets", "a,b"), "");
  EXPECT_THAT(setting_.image_pull_secrets, ElementsAre("a", "b"));
  for (const char* bad : {"data", "data:x", ":/data", "data:/", "a:/a,,b:/b"})
    EXPECT_THAT(Take("claims", bad), HasSubstr("accepted: a list of NAME:PATH")) << bad;
  EXPECT_EQ(Take("tolerations", R"([{"operator": "Exists"}])"), "");
  EXPECT_THAT(Take("tolerations", "{}"), HasSubstr("accepted: a list of tolerations"));
  EXPECT_EQ(Take("pod_template", R"({"spec": {}})"), "");
  EXPECT_THAT(Take("pod_template", "spec"), HasSubstr("accepted: a map with metadata and spec"));
}

TEST_F(KubernetesSettingTest, NoValueTakesOneBack) {
  const KubernetesSetting usual;
  for (const char* name : {"nodes", "image", "gang", "shm", "claims", "image_pull_secrets", "tolerations",
                           "pod_template", "start_timeout", "start_tries", "start_pause", "keep", "labels"})
    EXPECT_EQ(Take(name, std::nullopt), "") << name;
  EXPECT_EQ(setting_, usual);
}

TEST_F(KubernetesSettingTest, MistakesSayWhatIsAccepted) {
  EXPECT_THAT(Take("node", "1"), HasSubstr("'node' is unknown (nearest: nodes); accepted: nodes, image,"));
  EXPECT_THAT(Take("nodes", "0"), HasSubstr("accepted: a whole number from 1"));
  EXPECT_THAT(Take("image", "a b"), HasSubstr("accepted: an image"));
  for (const char* bad : {"Team_A", "-a", "a.b", ""})
    EXPECT_THAT(Take("namespace", bad), HasSubstr("accepted: a name of lower-case letters")) << bad;
  EXPECT_THAT(Take("tolerations", "[{key: 3"), HasSubstr("in JSON on the command line"));
  EXPECT_THAT(Take("gang", "x"), HasSubstr("accepted: none, kueue, volcano or coscheduling"));
  EXPECT_THAT(Take("start_timeout", "1"), HasSubstr("accepted: a time from 10s"));
  EXPECT_THAT(Take("start_tries", "0"), HasSubstr("accepted: a whole number from 1"));
  EXPECT_THAT(Take("start_pause", "0"), HasSubstr("accepted: a time from 1s"));
  EXPECT_THAT(Take("keep", "nan"), HasSubstr("accepted: a time from 0"));
  EXPECT_THAT(Take("shm", "much"), HasSubstr("accepted: a number (MB)"));
}

TEST_F(KubernetesSettingTest, SaysWhatMustBeStated) {
  EXPECT_THAT(std::string(CheckKubernetesSetting(setting_).message()), HasSubstr("in which image?"));
  setting_.image = "i";
  EXPECT_EQ(CheckKubernetesSetting(setting_), absl::OkStatus());
  setting_.gang = PodGang::kKueue;
  EXPECT_THAT(std::string(CheckKubernetesSetting(setting_).message()), HasSubstr("needs a queue"));
  setting_.queue = "q";
  EXPECT_EQ(CheckKubernetesSetting(setting_), absl::OkStatus());
  setting_.gang = PodGang::kNone;
  EXPECT_THAT(std::string(CheckKubernetesSetting(setting_).message()), HasSubstr("gang: kueue or gang: volcano only"));
}

// By these muster finds and deletes a job's pods.
TEST_F(KubernetesSettingTest, LabelsOfMusterAreNobodyElses) {
  setting_.image = "i";
  const auto check = [this] { return std::string(CheckKubernetesSetting(setting_).message()); };
  setting_.labels = {{"team", "a"}, {"mustering", "b"}};
  setting_.pod_template = R"({"metadata": {"labels": {"cost": "c"}}})";
  EXPECT_EQ(check(), "");
  setting_.labels["muster/job"] = "other";
  EXPECT_THAT(check(), AllOf(HasSubstr("labels: 'muster/job' is muster's own"),
                             HasSubstr("accepted: names that don't begin with muster/")));
  setting_.labels.erase("muster/job");
  setting_.pod_template = R"({"metadata": {"labels": null}})";
  EXPECT_THAT(check(), HasSubstr("pod_template: metadata: labels is null"));
}

}  // namespace
}  // namespace muster::kubernetes_setting_test
