#include "muster/launch/manifest/manifest_tasks.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/launch/manifest/manifest_names.h"
#include "muster/launch/manifest/task_variables.h"

namespace muster::manifest_tasks_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Key,
    ::testing::Not, ::testing::Pair;

ManifestRequest NamedRequest(ManifestForm form = ManifestForm::kJob) {
  ManifestRequest request{.form = form, .name = "digits"};
  request.image = "i";
  return request;
}

ExperimentFile FileOf(const std::string& text) {
  auto file = ParseExperimentFile(absl::StrCat("project: digits\ntrain:\n", text), "muster.yml");
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *file : ExperimentFile();
}

TEST(ManifestTasksTest, AFileIsItsRolesWithTheirResources) {
  const ExperimentFile file = FileOf(
      "  framework: muster\n  run: a\n  muster:\n    distributed:\n      worker: 3\n"
      "      ps: {count: 2, resources: {mem: 1GB}}\n");
  ManifestRequest request = NamedRequest();
  ASSERT_EQ(TakeFile(file, {}, request), absl::OkStatus());
  ASSERT_EQ(request.roles.size(), 3u);
  EXPECT_EQ(request.roles[0].job, "ps");
  EXPECT_EQ(request.roles[0].count, 2);
  EXPECT_EQ(request.roles[0].resources.mem_bytes, 1 << 30);
  EXPECT_THAT(request.roles[0].command, ElementsAre("muster", "ps"));
  EXPECT_EQ(request.roles[1].job, "master");
  EXPECT_THAT(request.roles[1].command, ElementsAre("/bin/sh", "-c", "mkdir -p \"$OUTPUT_DIR\" || exit\nexec a\n"));
  EXPECT_EQ(request.roles[2].count, 2);
  EXPECT_THAT(request.roles[2].environment,
              AllOf(Contains(Pair("OUTPUT_DIR", "/tmp/output")), Contains(Pair("JOB_NAME", "digits")),
                    Not(Contains(Key("TF_CONFIG"))), Not(Contains(Key("MUSTER_RUN_ID")))));
  EXPECT_THAT(NotesOfFile(file, request), ElementsAre(HasSubstr("OUTPUT_DIR is /tmp/output")));
}

TEST(ManifestTasksTest, ImageAndNamespaceAreThoseOfKubernetesUnlessTheyAreStated) {
  ExperimentFile file = FileOf("  image: of_train\n  run: a\nkubernetes: {image: of_kubernetes, namespace: team}\n");
  ManifestRequest request = NamedRequest();
  ASSERT_EQ(TakeFile(file, {}, request), absl::OkStatus());
  EXPECT_EQ(request.image, "i") << "a flag wins";
  EXPECT_EQ(request.name_space, "team");
  request = NamedRequest();
  request.image = "";
  request.name_space = "mine";
  ASSERT_EQ(TakeFile(file, {}, request), absl::OkStatus());
  EXPECT_EQ(request.image, "of_kubernetes");
  EXPECT_EQ(request.name_space, "mine");
  request = NamedRequest();
  request.image = "";
  file = FileOf("  image: of_train\n  run: a\n");
  ASSERT_EQ(TakeFile(file, {}, request), absl::OkStatus());
  EXPECT_EQ(request.image, "of_train");
  EXPECT_EQ(request.name_space, "");
}

TEST(ManifestTasksTest, WhatPodsCantHaveIsAMistakeWithTheWayOut) {
  ManifestRequest request = NamedRequest();
  const ExperimentFile file = FileOf("  run: a\n  volumes: [/data]\n  torchrun: {workers: 2, processes: 4}\n");
  const absl::Status status = TakeFile(file, {}, request);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("train.volumes: /data is a folder of one machine"),
                                      HasSubstr("accepted: --claim NAME:/data"),
                                      HasSubstr("train.torchrun.processes: 4, but each container has one")));
  request.claims = {{.name = "data", .path = "/data"}};
  EXPECT_THAT(TakeFile(file, {}, request).message(), Not(HasSubstr("volumes")));
}

TEST(ManifestTasksTest, NotesSayWhatIsDifferent) {
  const ExperimentFile file = FileOf(
      "  framework: tensorflow\n  run: a\n  output: /results\n  install: pip install x\n  setup: make\n"
      "  tensorflow: {distributed: {worker: 1, ps: 1}}\n");
  EXPECT_THAT(NotesOfFile(file, NamedRequest(ManifestForm::kJob)),
              ElementsAre(HasSubstr("train.install"), HasSubstr("train.setup"), HasSubstr("server.join()")));
  EXPECT_THAT(NotesOfFile(file, NamedRequest(ManifestForm::kJobSet)), ::testing::SizeIs(2));
}

TEST(ManifestTasksTest, AClusterIsItsCounts) {
  ManifestRequest request = NamedRequest();
  ClusterRequest cluster{.ps = 0, .workers = 2, .chiefs = 1, .evaluator = true};
  cluster.program = {"train"};
  cluster.environment = {"OMP_NUM_THREADS=1"};
  ASSERT_EQ(TakeCluster(cluster, {.cpus = 2.5}, {}, request), absl::OkStatus());
  ASSERT_EQ(request.roles.size(), 3u);
  EXPECT_EQ(request.roles[0].job, "chief");
  EXPECT_THAT(request.roles[1].environment, ElementsAre(Pair("OMP_NUM_THREADS", "1")));
  EXPECT_EQ(request.roles[2].job, "evaluator");
  EXPECT_TRUE(absl::IsInvalidArgument(TakeCluster({.workers = 0}, {}, {}, request)));
}

TEST(ManifestTasksTest, ResourcesAreReadByName) {
  const auto all = ParseManifestResources("--resources", "cpus=0.5,mem=2GB,gpus=1");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(*all, (Resources{.cpus = 0.5, .mem_bytes = int64_t{2} << 30, .gpus = 1}));
  EXPECT_EQ(*ParseManifestResources("--resources", ""), Resources());
  for (const char* wrong : {"cpus", "cpus=0", "cpus=nan", "mem=much", "gpus=-1", "disk=1", "cpus=1,", "=1"})
    EXPECT_THAT(ParseManifestResources("--resources", wrong).status().message(),
                AllOf(HasSubstr(absl::StrCat("--resources \"", wrong, "\"")), HasSubstr("accepted: ")));
}

TEST(ManifestTasksTest, TextsAreKeptFromTheExpansionOfKubernetes) {
  EXPECT_EQ(KeptFromExpansion("$(date) $$ ${X} $HOME $"), "$$(date) $$$ ${X} $HOME $");
  EXPECT_EQ(KeptFromExpansion("$$(X)"), "$$$$(X)");
}

TEST(ManifestTasksTest, ANameBecomesADnsLabel) {
  EXPECT_EQ(DnsLabelOf("My_net.2"), "my-net-2");
  EXPECT_EQ(DnsLabelOf("__2nd--try_"), "nd-try");
  EXPECT_EQ(DnsLabelOf("42"), "");
}

}  // namespace
}  // namespace muster::manifest_tasks_test
