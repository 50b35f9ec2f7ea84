// Compares manifests with those of tests/data/manifests/, which tests/tools/manifest_test.py holds to the models of
// Kubernetes. After a change that should be seen there:
//   MUSTER_WRITE_MANIFESTS=1 build/release/bin/launch_test --gtest_filter=*GoldenManifest*
#include "muster/launch/manifest/manifest.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/launch/manifest/manifest_tasks.h"

namespace muster::manifest_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

constexpr char kDigits[] = R"(project: Digits_2
train:
  framework: muster
  image: registry.example/me/digits:1
  muster:
    distributed:
      worker: {count: 3, resources: {cpus: 2, mem: 4GB, gpus: 1}}
      ps: {count: 2, resources: {cpus: 0.5, mem: 1GB}}
      evaluator: true
  parameters: {rate: 0.1}
  env: {GREETING: "$(RATE) and $HOME"}
  run:
    - echo "it's {{ rate }}"
    - digits --rate {{ rate }}
)";

constexpr char kAlone[] = R"(project: alone
train:
  image: me/alone@sha256:0123456789abcdef
  restart: {policy: never}
  run: python3 train.py
)";

constexpr char kTorchrun[] = R"(project: resnet
train:
  framework: pytorch
  image: me/resnet:2
  torchrun: {workers: 2, resources: {gpus: 8}, restart: {policy: always, limit: 5}}
  run: python3 train.py
)";

ManifestRequest NewRequest(const std::string& name, ManifestForm form) {
  ManifestRequest request{.form = form, .name = name};
  request.token = "0123456789abcdef0123456789abcdef";
  return request;
}

ManifestRequest RequestOfFile(const char* text, const std::string& name, ManifestForm form,
                              std::vector<ManifestClaim> claims = {}) {
  ManifestRequest request = NewRequest(name, form);
  request.claims = std::move(claims);
  const auto file = ParseExperimentFile(text, "muster.yml");
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return request;
  request.image = file->image;
  EXPECT_EQ(TakeFile(*file, AllCombinations(file->parameters)->front(), request), absl::OkStatus());
  return request;
}

// Stand-alone ps, no chief, and every option.
ManifestRequest ProgramWithAll(ManifestForm form) {
  ManifestRequest request = NewRequest("train", form);
  request.image = "me/train:3";
  ClusterRequest cluster{.ps = 1, .workers = 4, .muster_ps = true};
  cluster.program = {"/opt/train", "--epochs", "3", "$(PATH)"};
  if (form != ManifestForm::kTfJob) cluster.model_dir = "/models/train";
  cluster.environment = {"MUSTER_JOIN_TIMEOUT=60", "EMPTY="};
  EXPECT_EQ(TakeCluster(cluster, {.cpus = 4, .mem_bytes = int64_t{8} << 30, .gpus = 2},
                        {.cpus = 1.5, .mem_bytes = (int64_t{2} << 30) + 2}, request),
            absl::OkStatus());
  request.name_space = "team";
  request.token_secret = "shared";
  request.token_key = "muster";
  request.claims = {{.name = "models", .path = "/models"}, {.name = "data", .path = "/data", .read_only = true}};
  request.annotations = {{"sidecar.istio.io/inject", "true"}, {"example.org/note", "a: b\nc"}};
  request.labels = {{"kueue.x-k8s.io/queue-name", "gpus"}};
  request.node_selector = {{"zone", "b"}};
  request.tolerations = {{.key = "gpu"}, {.key = "team", .value = "a", .effect = "NoSchedule"}};
  request.service_account = "trainer";
  request.pull_secret = "pull";
  request.gpu_resource = "amd.com/gpu";
  request.work_folder = "/opt";
  request.shm_bytes = int64_t{1} << 30;
  request.user = ManifestUser{.user = 1000, .group = 2000};
  request.stop_grace = absl::Minutes(2);
  return request;
}

struct GoldenManifest {
  std::string name;
  std::function<ManifestRequest()> make;
};

std::vector<GoldenManifest> GoldenManifests() {
  const std::vector<ManifestClaim> results = {{.name = "results", .path = "/results"}};
  return {
      {"jobset_digits", [=] { return RequestOfFile(kDigits, "digits-2", ManifestForm::kJobSet, results); }},
      {"job_digits", [=] { return RequestOfFile(kDigits, "digits-2", ManifestForm::kJob, results); }},
      {"tfjob_digits", [=] { return RequestOfFile(kDigits, "digits-2", ManifestForm::kTfJob, results); }},
      {"jobset_all", [] { return ProgramWithAll(ManifestForm::kJobSet); }},
      {"tfjob_all", [] { return ProgramWithAll(ManifestForm::kTfJob); }},
      {"job_alone", [] { return RequestOfFile(kAlone, "alone", ManifestForm::kJob); }},
      {"jobset_torchrun", [] { return RequestOfFile(kTorchrun, "resnet", ManifestForm::kJobSet); }},
  };
}

class GoldenManifestTest : public ::testing::TestWithParam<GoldenManifest> {};

TEST_P(GoldenManifestTest, IsAsRecorded) {
  const auto text = ManifestText(GetParam().make());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, *ManifestText(GetParam().make())) << "the same request is the same text";
  const std::string path = absl::StrCat(SourceFolder(), "/tests/data/manifests/", GetParam().name, ".yaml");
  if (std::getenv("MUSTER_WRITE_MANIFESTS") != nullptr) std::ofstream(path, std::ios::binary) << *text;
  const auto recorded = PosixFileSystem().ReadFile(path);
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(*text, *recorded) << "MUSTER_WRITE_MANIFESTS=1 records it";
}

INSTANTIATE_TEST_SUITE_P(All, GoldenManifestTest, ::testing::ValuesIn(GoldenManifests()),
                         [](const auto& golden) { return golden.param.name; });

std::string MistakesOf(const ManifestRequest& request) {
  const auto text = ManifestText(request);
  EXPECT_TRUE(absl::IsInvalidArgument(text.status())) << text.status();
  return std::string(text.status().message());
}

TEST(ManifestTest, EveryMistakeIsALine) {
  ManifestRequest request = ProgramWithAll(ManifestForm::kJobSet);
  request.image = "";
  request.name_space = "Team";
  request.labels = {{"app.kubernetes.io/name", "other"}, {"a b", "c"}, {"team", "a b"}};
  request.claims = {{.name = "models", .path = "models"}, {.name = "data", .path = "/dev/shm"}};
  request.tolerations = {{.key = "gpu", .effect = "Never"}};
  request.shm_bytes = int64_t{8} << 30;
  const std::string mistakes = MistakesOf(request);
  EXPECT_THAT(mistakes, AllOf(HasSubstr("no image; accepted: --image NAME"), HasSubstr("--namespace \"Team\""),
                              HasSubstr("--label app.kubernetes.io/name: muster's own"), HasSubstr("--label \"a b\""),
                              HasSubstr("--label team \"a b\""), HasSubstr("--claim models: its path is \"models\""),
                              HasSubstr("--claim data: /dev/shm is taken"), HasSubstr("its effect is \"Never\"")));
  EXPECT_THAT(mistakes,
              HasSubstr("--shm 8.0 GB: what is in /dev/shm counts as memory of the worker, which has 8.0 GB"));
}

TEST(ManifestTest, WhatKubernetesWouldRefuseOrEachPodWouldHaveForItselfIsRefused) {
  ManifestRequest request = ProgramWithAll(ManifestForm::kJobSet);
  request.user = ManifestUser{.user = 99999999999, .group = 1};
  request.token_key = "b/c";
  request.claims[0].path = "/models\n/x";
  request.work_folder = "/opt\n";
  request.model_dir = "models/train";
  EXPECT_THAT(MistakesOf(request),
              AllOf(HasSubstr("--user: 99999999999 is no UID or GID of a pod; accepted: 0 to 2147483647"),
                    HasSubstr("--token_secret, its key \"b/c\": accepted is a key of letters"),
                    HasSubstr("--claim models: its path is \"/models\\n/x\"; accepted is an absolute path"),
                    HasSubstr("--workdir \"/opt\\n\": accepted is an absolute path"),
                    HasSubstr("--model_dir \"models/train\": accepted is an absolute path")));
  request = ProgramWithAll(ManifestForm::kJobSet);
  request.user = ManifestUser{.user = 0, .group = 2147483648};
  EXPECT_THAT(MistakesOf(request), HasSubstr("--user: 2147483648 is"));
  request.user = ManifestUser{.user = 2147483647, .group = 2147483647};
  for (const char* good : {"token", "a.b_c-D", ".hidden", "_"}) {
    request.token_key = good;
    EXPECT_TRUE(ManifestText(request).ok()) << good;
  }
  for (const char* bad : {"", ".", "..", "..a", "a b"}) {
    request.token_key = bad;
    EXPECT_THAT(MistakesOf(request), HasSubstr("--token_secret, its key")) << bad;
  }
}

// Written as text, all such tokens would be the same one.
TEST(ManifestTest, WhatIsNoTextIsRefused) {
  ManifestRequest request = ProgramWithAll(ManifestForm::kJobSet);
  request.token = std::string(20, '\xff');
  request.annotations["a"] = "\xff";
  request.roles[0].command.push_back("kn\xf6pfe");
  request.roles[0].environment.emplace_back("A", "\xff");
  const std::string mistakes = MistakesOf(request);
  EXPECT_THAT(mistakes,
              AllOf(HasSubstr("MUSTER_JOB_TOKEN: isn't text; accepted: UTF-8"), HasSubstr("--annotation a: isn't"),
                    HasSubstr("the command of the "), HasSubstr("variable A: isn't text")));
  EXPECT_THAT(mistakes, Not(HasSubstr("\xff")));
}

TEST(ManifestTest, AnImagesNameHasNoCapitals) {
  ManifestRequest request = ProgramWithAll(ManifestForm::kJobSet);
  for (const char* good : {"a", "a:Tag", "Host.example:5000/team/a_b.c:1", "a/b@sha256:0123ABCD"}) {
    request.image = good;
    EXPECT_EQ(ManifestText(request).status(), absl::OkStatus()) << good;
  }
  for (const char* bad : {"UPPER:1", "Team/train:1", "a b", "host.example/", ":1"}) {
    request.image = bad;
    EXPECT_THAT(MistakesOf(request), HasSubstr(absl::StrCat("--image \"", bad, "\": accepted is"))) << bad;
  }
}

TEST(ManifestTest, AllNamesOfTasksAreDnsLabels) {
  const std::string longest = "a" + std::string(63 - 1 - std::string("-worker-0-3").size(), 'b');
  ManifestRequest request = ProgramWithAll(ManifestForm::kJobSet);
  request.name = longest;
  EXPECT_TRUE(ManifestText(request).ok());
  request.name += 'b';
  EXPECT_THAT(MistakesOf(request), HasSubstr(absl::StrCat("accepted are at most ", longest.size())));
  for (const char* wrong : {"", "1st", "-a", "a-", "a_b", "A", "a.b"}) {
    request.name = wrong;
    EXPECT_THAT(MistakesOf(request), HasSubstr(absl::StrCat("--name \"", wrong, "\": accepted is"))) << wrong;
  }
}

TEST(ManifestTest, ATFJobHasOnlyWhatItsOperatorWrites) {
  ManifestRequest request = ProgramWithAll(ManifestForm::kTfJob);
  request.model_dir = "/models";
  EXPECT_THAT(MistakesOf(request), HasSubstr("without --model_dir; accepted"));
  EXPECT_THAT(MistakesOf(RequestOfFile(kTorchrun, "resnet", ManifestForm::kTfJob)), HasSubstr("accepted: jobset, job"));
  EXPECT_THAT(*ManifestText(ProgramWithAll(ManifestForm::kTfJob)), Not(HasSubstr("TF_CONFIG")));
}

TEST(ManifestTest, EvictionsAreNoFailuresAndUsersMistakesAreFinal) {
  const std::string often = *ManifestText(RequestOfFile(kTorchrun, "resnet", ManifestForm::kJobSet));
  EXPECT_THAT(often, AllOf(HasSubstr("backoffLimit: 10\n"), HasSubstr("operator: In\n"), HasSubstr("values:\n")));
  const std::string usual = *ManifestText(ProgramWithAll(ManifestForm::kJobSet));
  EXPECT_THAT(usual, AllOf(HasSubstr("backoffLimit: 12\n"), HasSubstr("operator: NotIn\n"),
                           HasSubstr("type: DisruptionTarget\n"), HasSubstr("# Needs Kubernetes 1.26")));
  const std::string never = *ManifestText(RequestOfFile(kAlone, "alone", ManifestForm::kJob));
  EXPECT_THAT(never, AllOf(HasSubstr("backoffLimit: 0\n"), Not(HasSubstr("podFailurePolicy")),
                           HasSubstr("# Needs Kubernetes 1.24")));
}

}  // namespace
}  // namespace muster::manifest_test
