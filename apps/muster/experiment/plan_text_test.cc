#include "apps/muster/experiment/plan_text.h"

#include <gmock/gmock.h>

#include "muster/launch/testing/tensorflow_file.h"

namespace muster::plan_text_test {
namespace {

using ::testing::AnyOf, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::Not, ::testing::StartsWith;

constexpr char kCommand[] = "    python learn.py --depth 4 --step-size 0.1 --data /data/kettles\n";

ExperimentFile FileOf(const std::string& text) { return ParseExperimentFile(text, "riseml.yml").value(); }

TEST(PlanTextTest, ATensorflowFileAsItsAuthorMeantIt) {
  const std::string plan = PlanText(FileOf(kTensorflowFile), {{{"depth", "4"}, {"step-size", "0.1"}}}, {}).value();
  EXPECT_THAT(plan, StartsWith("riseml.yml: project tea-timer, framework tensorflow 1.4.0-gpu\n5 tasks\nparameters:\n"
                               "  depth: 4\n  step-size: 0.1\ntasks, with their commands:\n"));
  EXPECT_THAT(plan, HasSubstr(std::string("  ps.1, ps.2: 2 cpus, 8.0 GB of memory\n") + kCommand));
  EXPECT_THAT(plan, HasSubstr(std::string("  master: 2 cpus, 8.0 GB of memory, 2 GPUs\n") + kCommand));
  EXPECT_THAT(plan, HasSubstr(std::string("  worker.1, worker.2: 2 cpus, 8.0 GB of memory, 2 GPUs\n") + kCommand));
  EXPECT_THAT(plan, HasSubstr("variables of the tasks: DEPTH, EXPERIMENT_ID, JOB_NAME, MUSTER_"));
  EXPECT_THAT(plan, HasSubstr(", TF_CONFIG\n"));
}

TEST(PlanTextTest, WithoutValuesTheCommandIsThatOfTheFile) {
  EXPECT_THAT(PlanText(FileOf(kTensorflowFile), {{}}, {.options = {.no_gpus = true}}).value(),
              HasSubstr("  master: 2 cpus, 8.0 GB of memory\n    python learn.py --depth {{ depth }} "
                        "--step-size {{ step-size }} --data /data/kettles\n"));
}

TEST(PlanTextTest, AGridAndItsFirstRun) {
  const std::string plan =
      PlanText(FileOf("project: p\ntrain:\n  framework: muster\n  muster: {distributed: {ps: 1, worker: 5}}\n"
                      "  install: make\n  concurrency: 2\n  run: [prepare, 'x {{ lr }}']\n"),
               {{{"lr", "1"}}, {{"lr", "2"}}}, {})
          .value();
  EXPECT_EQ(plan.substr(0, plan.find("variables of")),
            "riseml.yml: project p, framework muster\ngrid: 2 runs, 2 at a time, each of 6 tasks\nparameters:\n"
            "  lr: 1, 2\ninstall, once before the tasks:\n    make\ntasks, with their commands in the first run:\n"
            "  ps.1: no limits\n    muster ps\n  master: no limits\n    prepare\n    x 1\n"
            "  worker.1 to worker.4: no limits\n    prepare\n    x 1\n");
}

TEST(PlanTextTest, EverySettingHasItsSource) {
  const ExperimentFile file = FileOf(
      "project: p\ntrain:\n  framework: tensorflow\n  tensorflow:\n    distributed: {ps: 1, worker: 5}\n"
      "  resources:\n    cpus: 2\n  parameters:\n    lr: [0.1, 0.2]\n    depth: 4\n  env: {API_KEY: secret}\n"
      "  run: [prepare, 'x {{ lr }}']\n");
  const GivenValues given = {.options = {.no_gpus = true, .stop_grace_seconds = 7},
                             .stop_grace = true,
                             .hosts = {{"ports", "40000-40100"}},
                             .parameters = {"depth=8", "new=a b"},
                             .environment = {"MUSTER_HOME=/h", "MUSTER_JOB_TOKEN=0123456789abcdef"}};
  const std::string plan = PlanText(file, {{{"lr", "0.1"}}, {{"lr", "0.2"}}}, given).value();
  const size_t begin = plan.find(
      "settings and where they come from (a flag wins over the environment, the environment over the file, the file "
      "over the default):\n");
  ASSERT_NE(begin, std::string::npos) << plan;
  const auto row = [&](const std::string& name, const std::string& value, const std::string& source) {
    EXPECT_THAT(plan.substr(begin), ContainsRegex("\n  " + name + " +" + value + " +" + source + "\n"));
  };
  row("project", "p", "riseml.yml:1");
  row("train.framework", "tensorflow", "riseml.yml:3");
  row("train.tensorflow.version", "the installed one", "default");
  row("train.tensorflow.distributed.ps", "1", "riseml.yml:5");
  row("train.resources.cpus", "2", "riseml.yml:7");
  row("train.resources.mem", "no limit", "default");
  row("train.parameters.lr", "0.1, 0.2", "riseml.yml:9");
  row("train.parameters.depth", "8", "--param, not riseml.yml:10");
  row("train.parameters.new", "a b", "--param");
  row("train.env.API_KEY", ".not shown.", "riseml.yml:11");
  row("train.run", "prepare, x .. lr ..", "riseml.yml:12");
  row("train.concurrency", "1", "default");
  row("train.restart.policy", "on-failure", "default");
  row("ports", "40000-40100", "--ports");
  row("stop-grace", "7 s", "--stop-grace");
  row("no-gpus", "true", "--no-gpus");
  row("no-venv", "false", "default");
  row("MUSTER_HOME", "/h", "environment");
  row("MUSTER_JOB_TOKEN", ".not shown.", "environment");
  row("CUDA_VISIBLE_DEVICES", "all GPUs", "default");
  EXPECT_THAT(plan, Not(AnyOf(HasSubstr("secret"), HasSubstr("0123456789abcdef"))));
}

// Where flags for hosts put keys of the file out of effect, these aren't shown as if they counted.
TEST(PlanTextTest, WhatFlagsForHostsPutOutOfEffectIsSaid) {
  const ExperimentFile file = FileOf(
      "project: p\nhosts: a,b\nplacement: {master: a}\nsupervisor: far\nslurm: {nodes: 2}\n"
      "train:\n  framework: muster\n  run: x\n");
  const auto row = [&](const GivenValues& given, const std::string& name, const std::string& value,
                       const std::string& source) {
    EXPECT_THAT(PlanText(file, {{}}, given).value(),
                ContainsRegex("\n  " + name + " +" + value + " +" + source + "\n"));
  };
  GivenValues as_in_file;
  as_in_file.options.hosts = {.hosts = file.hosts.hosts, .placement = file.hosts.placement};
  row(as_in_file, "on", "ssh", "default, as there are hosts");
  row(as_in_file, "hosts", "a,b", "riseml.yml:2");
  row(as_in_file, "placement.master", "a", "riseml.yml:3");
  row(as_in_file, "supervisor", "far", "riseml.yml:4");
  row(as_in_file, "slurm", "none", "on ssh, not the file's");
  row(as_in_file, "code_limit", "256 MB", "default");

  GivenValues other_hosts;
  other_hosts.options.hosts.hosts = {{.name = "c"}};
  other_hosts.hosts = {{"host_file", "list"}, {"supervisor", "here"}};
  other_hosts.code_limit = "1GB";
  row(other_hosts, "on", "ssh", "--host_file");
  row(other_hosts, "host_file", "list", "--host_file");
  row(other_hosts, "hosts", "none", "--host_file, not the file's");
  row(other_hosts, "placement", "none", "--host_file, not the file's");
  row(other_hosts, "supervisor", "here", "--supervisor, not the file's");
  row(other_hosts, "code_limit", "1GB", "--code_limit");

  GivenValues here;
  here.hosts = {{"on", "local"}};
  row(here, "on", "local", "--on");
  row(here, "hosts", "none", "--on, not the file's");
  row(here, "placement", "none", "--on, not the file's");

  GivenValues of_same_name = other_hosts;
  of_same_name.options.hosts = {.hosts = {{.name = "a"}}, .placement = file.hosts.placement};
  row(of_same_name, "placement.master", "a", "riseml.yml:3");
}

TEST(PlanTextTest, AFlagOfTheJobPutsOnlyItsOwnKeyOutOfEffect) {
  const ExperimentFile file =
      FileOf("project: p\non: spark\nspark:\n  nodes: 2\n  address: yarn\ntrain:\n  framework: muster\n  run: x\n");
  GivenValues given;
  given.options.hosts.spark.emplace();
  given.of_job = {"nodes=4", "conf.spark.yarn.queue=research"};
  const std::string plan = PlanText(file, {{}}, given).value();
  EXPECT_THAT(plan, ContainsRegex("\n  spark.nodes +4 +--spark, not riseml.yml:4\n"));
  EXPECT_THAT(plan, ContainsRegex("\n  spark.address +yarn +riseml.yml:5\n"));
  EXPECT_THAT(plan, ContainsRegex("\n  spark.conf.spark.yarn.queue +research +--spark\n"));
}

TEST(PlanTextTest, TheDefaultsOfOtherEnginesAreLeftOut) {
  const ExperimentFile file = FileOf("project: p\ntrain:\n  framework: muster\n  run: x\n");
  const auto engines_in = [&](const GivenValues& given) {
    const std::string plan = PlanText(file, {{}}, given).value();
    std::string found;
    for (const char* engine : {"slurm", "ray", "spark", "kubernetes"})
      if (plan.find(std::string("\n  ") + engine + " ") != std::string::npos) found += std::string(engine) + " ";
    return found;
  };
  GivenValues slurm;
  slurm.options.hosts.slurm.emplace();
  EXPECT_EQ(engines_in(slurm), "slurm ");
  EXPECT_EQ(engines_in({}), "");
}

TEST(PlanTextTest, TheTasksOfEachHostAreNamed) {
  const ExperimentFile file =
      ParseExperimentFile(
          "project: p\ntrain:\n  framework: muster\n  muster: {distributed: {ps: 1, worker: 3}}\n  run: x\n",
          "muster.yml")
          .value();
  GivenValues given;
  given.options.hosts.hosts = {{.name = "a", .slots = 2}, {.name = "b"}, {.name = "c", .slots = 1}};
  given.options.hosts.placement = {{"worker", {"a"}}};
  const std::string text = PlanText(file, {{}}, given).value();
  EXPECT_THAT(
      text, ::testing::HasSubstr("hosts, with their tasks:\n  a: ps.1, worker.1, worker.2\n  b: master\n  c: none\n"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("MUSTER_STATUS_PORT"))) << "hosts have no status pages";
}

}  // namespace
}  // namespace muster::plan_text_test
