// Among others, compares the text of --on kubernetes with tests/data/manifests/train_pods.yaml, which
// tests/tools/manifest_test.py holds to the models of Kubernetes. After a change that should be seen there:
//   MUSTER_WRITE_MANIFESTS=1 build/release/bin/launch_test --gtest_filter=PodJobTest.IsAsUsersReadIt
#include "muster/launch/engines/kubernetes/pod_job.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"

namespace muster::pod_job_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

PodJob Job(const KubernetesSetting& setting = {.image = "registry.example/team/train:1"}) {
  PodJob job{.request = {.experiment = "1.2",
                         .project = "toy",
                         .notice = absl::Seconds(90),
                         .home = "/u/.muster",
                         .output_file = "/u/.muster/experiments/1/runs/2/job.out",
                         .over_file = "/u/.muster/experiments/1/runs/2/job_over"},
             .place = {.context = "c", .name_space = "team"},
             .suffix = "8c1f2a3b"};
  job.request.needs = {.cpus = 2.5, .mem_bytes = int64_t{4} << 30, .gpus = 1};
  job.request.setting.kubernetes = setting;
  return job;
}

TEST(PodJobTest, IsAsUsersReadIt) {
  KubernetesSetting setting{.nodes = 1,
                            .image = "registry.example/team/train:1",
                            .image_pull_secrets = {"pull"},
                            .node_selector = {{"disk", "ssd"}},
                            .tolerations = R"([{"key":"gpu","operator":"Exists"}])",
                            .claims = {{"data", "/data"}}};
  const std::string text = PodJobText(Job(setting));
  const std::string path = absl::StrCat(SourceFolder(), "/tests/data/manifests/train_pods.yaml");
  if (std::getenv("MUSTER_WRITE_MANIFESTS") != nullptr) std::ofstream(path, std::ios::binary) << text;
  const auto recorded = PosixFileSystem().ReadFile(path);
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(text, *recorded) << "MUSTER_WRITE_MANIFESTS=1 records it";
}

TEST(PodJobTest, APodLearnsNoFileOfTheMachineThatSubmitsIt) {
  PodJob job = Job();
  job.place.kubeconfig = "/users/kubeconfig";
  job.place.kubectl = "/users/kubectl";
  EXPECT_THAT(PodJobText(job), AllOf(Not(HasSubstr("/users/")), HasSubstr("\"context\":\"c\"")));
}

TEST(PodJobTest, IsTakenApartAndFilledIn) {
  const std::string text = PodJobText(Job());
  const auto job = ParsePodJob(text);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->name, "muster-1-2-8c1f2a3b");
  EXPECT_EQ(absl::StrCat(job->supervisor, "---\n", job->others), text);
  EXPECT_THAT(job->supervisor, Not(HasSubstr(kOpenUid)));
  const std::string filled = FilledIn(job->others, "5ec2e7", "u-i-d");
  EXPECT_THAT(filled, AllOf(HasSubstr("secret 5ec2e7\n"), HasSubstr("uid: \"u-i-d\""), Not(HasSubstr(kOpenUid))));
  EXPECT_FALSE(ParsePodJob("#!/bin/sh\n").ok());
}

TEST(PodJobTest, WhatNoTaskStatesIsntAskedFor) {
  PodJob job = Job();
  job.request.needs = {};
  const OrderedJson pod = AgentPod(job, 0);
  EXPECT_EQ(pod["spec"]["containers"][0]["resources"]["limits"], OrderedJson::object());
  EXPECT_EQ(pod["spec"]["volumes"].back().dump(), R"({"name":"shm","emptyDir":{"medium":"Memory"}})");
}

TEST(PodJobTest, SharedMemoryIsHalfOfThePodsOrWhatIsStated) {
  KubernetesSetting setting{.image = "a", .shm_bytes = 1 << 20};
  EXPECT_EQ(AgentPod(Job(setting), 0)["spec"]["volumes"].back()["emptyDir"]["sizeLimit"], "1Mi");
  setting.shm_bytes.reset();
  EXPECT_EQ(AgentPod(Job(setting), 0)["spec"]["volumes"].back()["emptyDir"]["sizeLimit"], "2Gi");
  setting.shm_bytes = 0;
  EXPECT_EQ(AgentPod(Job(setting), 0)["spec"]["volumes"].back()["name"], "secret");
}

TEST(PodJobTest, PodsGetTheirGrace) {
  PodJob job = Job();
  EXPECT_EQ(AgentPod(job, 0)["spec"]["terminationGracePeriodSeconds"], 90);
  EXPECT_THAT(AgentPod(job, 0)["spec"]["containers"][0]["command"][2].get<std::string>(),
              HasSubstr("--ending 85 --passes_signals"));
  EXPECT_THAT(PodJobText(job), HasSubstr("terminationGracePeriodSeconds: 120")) << "the supervisor's";
  job.request.notice = absl::ZeroDuration();
  EXPECT_EQ(AgentPod(job, 0)["spec"]["terminationGracePeriodSeconds"], 30);
}

// Otherwise the tasks would be killed long before the pods' end, or the pods before them.
TEST(PodJobTest, TheGraceOfATemplateIsThatOfTheTasks) {
  KubernetesSetting setting{.image = "a"};
  setting.pod_template = R"({"spec": {"terminationGracePeriodSeconds": 600}})";
  const OrderedJson agent = AgentPod(Job(setting), 0);
  EXPECT_EQ(agent["spec"]["terminationGracePeriodSeconds"], 600);
  EXPECT_THAT(agent["spec"]["containers"][0]["command"][2].get<std::string>(), HasSubstr("--ending 595 "));
  const auto job = ParsePodJob(PodJobText(Job(setting)));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->supervisor,
              AllOf(HasSubstr("terminationGracePeriodSeconds: 600"), HasSubstr("keep=$((since + 597 - $(date +%s)))"),
                    HasSubstr("- name: MUSTER_KUBERNETES_ENDING\n      value: \"595\"\n")));
  setting.pod_template = R"({"spec": {"terminationGracePeriodSeconds": null}})";
  EXPECT_THAT(AgentPod(Job(setting), 0)["spec"]["containers"][0]["command"][2].get<std::string>(),
              HasSubstr("--ending 25 "))
      << "Kubernetes gives them 30 s";
}

TEST(PodJobTest, TheUsersTemplateWins) {
  KubernetesSetting setting{.image = "a", .annotations = {{"sidecar.istio.io/inject", "true"}}};
  setting.pod_template = R"({"spec": {"priorityClassName": "low", "containers": [{"name": "muster",
      "env": [{"name": "A", "value": "b"}], "securityContext": {"runAsUser": 7}}, {"name": "other", "image": "b"}]}})";
  const OrderedJson pod = AgentPod(Job(setting), 0);
  EXPECT_EQ(pod["metadata"]["annotations"]["sidecar.istio.io/inject"], "true");
  EXPECT_EQ(pod["spec"]["priorityClassName"], "low");
  EXPECT_EQ(pod["spec"]["containers"][1]["name"], "other");
  const OrderedJson& own = pod["spec"]["containers"][0];
  EXPECT_EQ(own["securityContext"].dump(), R"({"allowPrivilegeEscalation":false,"runAsUser":7})");
  EXPECT_EQ(own["env"][0]["name"], "MUSTER_POD_HOST");
  EXPECT_EQ(own["env"][1]["name"], "A");
}

// Those of the user and of muster are on every pod: cost is reckoned by them, and pods are found.
TEST(PodJobTest, LabelsReachAllPodsBesideMustersOwn) {
  KubernetesSetting setting{.image = "a", .labels = {{"team", "vision"}, {"sidecar.istio.io/inject", "true"}}};
  const OrderedJson labels = AgentPod(Job(setting), 0)["metadata"]["labels"];
  EXPECT_EQ(labels["team"], "vision");
  EXPECT_EQ(labels["sidecar.istio.io/inject"], "true") << "the user's wins";
  EXPECT_EQ(labels["muster/job"], "muster-1-2-8c1f2a3b");
  EXPECT_EQ(labels["muster/part"], "agent");
  const auto job = ParsePodJob(PodJobText(Job(setting)));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->supervisor, AllOf(HasSubstr("    team: vision\n"), HasSubstr("muster/part: supervisor\n")));
}

TEST(PodJobTest, AServiceAccountIsTheSupervisorsAndHasHowToMakePods) {
  KubernetesSetting setting{.nodes = 2, .image = "a", .service_account = "trainer"};
  EXPECT_EQ(AgentPod(Job(setting), 1)["spec"]["automountServiceAccountToken"], false);
  const std::string text = PodJobText(Job(setting));
  EXPECT_THAT(text, AllOf(HasSubstr("automountServiceAccountToken: true"), HasSubstr("agent.json: "),
                          HasSubstr("serviceAccountName: trainer"),
                          HasSubstr("- name: MUSTER_KUBERNETES_API\n      value: \"1\"\n")));
  EXPECT_THAT(PodJobText(Job()),
              AllOf(Not(HasSubstr("automountServiceAccountToken: true")), Not(HasSubstr("agent.json"))));
}

TEST(PodJobTest, GangsHaveWhatTheirSystemsRead) {
  KubernetesSetting setting{.nodes = 2, .image = "a", .gang = PodGang::kKueue, .queue = "team-q"};
  const std::string kueue = PodJobText(Job(setting));
  EXPECT_THAT(kueue, AllOf(HasSubstr("kueue.x-k8s.io/queue-name: team-q"),
                           HasSubstr("kueue.x-k8s.io/pod-group-name: muster-1-2-8c1f2a3b"),
                           HasSubstr("kueue.x-k8s.io/pod-group-total-count: \"3\""), Not(HasSubstr("PodGroup"))));
  setting.gang = PodGang::kVolcano;
  EXPECT_THAT(
      PodJobText(Job(setting)),
      AllOf(HasSubstr("kind: PodGroup"), HasSubstr("spec:\n  minMember: 3\n  queue: team-q\n"),
            HasSubstr("scheduling.k8s.io/group-name: muster-1-2-8c1f2a3b"), HasSubstr("schedulerName: volcano")));
  setting = {.nodes = 2, .image = "a", .gang = PodGang::kCoscheduling, .scheduler = "own"};
  EXPECT_THAT(PodJobText(Job(setting)),
              AllOf(HasSubstr("spec:\n  minMember: 3\n  scheduleTimeoutSeconds: 600\n"),
                    HasSubstr("scheduling.x-k8s.io/pod-group: muster-1-2-8c1f2a3b"), HasSubstr("schedulerName: own")));
}

TEST(PodJobTest, PortsOfTheUserHoldForTheSupervisorToo) {
  PodJob job = Job();
  job.request.setting.ports = PortRange{.first = 40000, .count = 10};
  EXPECT_THAT(PodJobText(job), AllOf(HasSubstr("address supervisor.muster-1-2-8c1f2a3b:40000\n"),
                                     HasSubstr("- name: MUSTER_KUBERNETES_PORT\n      value: \"40000\"\n")));
}

}  // namespace
}  // namespace muster::pod_job_test
