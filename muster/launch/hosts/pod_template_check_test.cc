#include "muster/launch/hosts/pod_template_check.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster::pod_template_check_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

std::string Check(const std::string& pod_template) { return std::string(CheckPodTemplate(pod_template).message()); }

TEST(PodTemplateCheckTest, TakesWhatIsMergedIntoPods) {
  for (const char* taken :
       {"", "{}", R"({"metadata": {}, "spec": {}})", R"({"metadata": {"labels": {"cost": "c", "team": null}}})",
        R"({"metadata": {"annotations": {"a": "b"}}, "spec": {"priorityClassName": "low", "nodeSelector": null}})",
        R"({"spec": {"containers": [{"name": "muster", "env": [{"name": "A", "value": "b"}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}]}, {"name": "other", "env": []}]}})",
        R"({"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "terminationGracePeriodSeconds": 10}})",
        R"({"spec": {"terminationGracePeriodSeconds": null}})"})
    EXPECT_EQ(Check(taken), "") << taken;
}

// Merging erases what is null, and replaces lists and maps by what isn't one.
TEST(PodTemplateCheckTest, WhatMustersOwnWouldBeTakenAwayByIsRefused) {
  const std::map<std::string, std::string> places = {
      {"metadata", R"({"metadata": $})"},
      {"spec", R"({"spec": $})"},
      {"metadata: labels", R"({"metadata": {"labels": $}})"},
      {"metadata: annotations", R"({"metadata": {"annotations": $}})"},
      {"spec: containers", R"({"spec": {"containers": $}})"},
      {"spec: volumes", R"({"spec": {"volumes": $}})"},
      {"spec: containers: muster: env", R"({"spec": {"containers": [{"name": "muster", "env": $}]}})"},
      {"spec: containers: muster: volumeMounts", R"({"spec": {"containers": [{"name": "muster",)"
                                                 R"( "volumeMounts": $}]}})"}};
  for (const auto& [place, text] : places)
    for (const std::string value : {"null", "[]", "1", R"([{"image":"a"}])"}) {
      const size_t at = text.find('$');
      EXPECT_THAT(Check(absl::StrCat(text.substr(0, at), value, text.substr(at + 1))),
                  HasSubstr(absl::StrCat("pod_template: ", place, " is ", value,
                                         ", which would take muster's own away; accepted: a ")));
    }
}

TEST(PodTemplateCheckTest, WhatPodsAreFoundByIsMustersAlone) {
  for (const char* key : {"name", "namespace", "ownerReferences"})
    for (const char* value : {"null", "\"a\"", "[]"})
      EXPECT_THAT(Check(absl::StrCat(R"({"metadata": {")", key, "\": ", value, "}}")),
                  HasSubstr(absl::StrCat("pod_template: metadata: ", key, " is muster's own")));
  for (const char* key : {"hostname", "subdomain"})
    EXPECT_THAT(Check(absl::StrCat(R"({"spec": {")", key, "\": null}}")),
                HasSubstr(absl::StrCat("pod_template: spec: ", key, " is muster's own")));
  EXPECT_THAT(Check(R"({"metadata": {"labels": {"cost": "c", "muster/part": null}}})"),
              AllOf(HasSubstr("pod_template: metadata: labels: 'muster/part' is muster's own"),
                    HasSubstr("accepted: names that don't begin with muster/")));
}

TEST(PodTemplateCheckTest, APodStaysAPodThatEnds) {
  EXPECT_THAT(Check(R"({"kind": "Deployment"})"), AllOf(HasSubstr("'kind'"), HasSubstr("accepted: metadata and spec")));
  for (const char* restart : {"\"Always\"", "\"OnFailure\"", "null", "5"})
    EXPECT_THAT(Check(absl::StrCat(R"({"spec": {"restartPolicy": )", restart, "}}")),
                AllOf(HasSubstr("spec: restartPolicy is "), HasSubstr("accepted: Never")));
  EXPECT_EQ(Check(R"({"spec": {"restartPolicy": "Never"}})"), "");
}

TEST(PodTemplateCheckTest, AGraceIsOfWholeSecondsThatSufficeForMuster) {
  for (const char* grace : {"9", "-1", "10.5", "\"60\"", "1e9", "2592001"})
    EXPECT_THAT(Check(absl::StrCat(R"({"spec": {"terminationGracePeriodSeconds": )", grace, "}}")),
                AllOf(HasSubstr("pod_template: spec: terminationGracePeriodSeconds is "),
                      HasSubstr("accepted: whole seconds from 10")))
        << grace;
}

TEST(PodTemplateCheckTest, SaysWhatGraceItHas) {
  EXPECT_EQ(GraceOfPodTemplate(""), std::nullopt);
  EXPECT_EQ(GraceOfPodTemplate(R"({"spec": {}})"), std::nullopt);
  EXPECT_EQ(GraceOfPodTemplate(R"({"spec": {"terminationGracePeriodSeconds": 600}})"), absl::Minutes(10));
  EXPECT_EQ(GraceOfPodTemplate(R"({"spec": {"terminationGracePeriodSeconds": null}})"), absl::Seconds(30));
}

}  // namespace
}  // namespace muster::pod_template_check_test
