// Tests the rules that TensorFlow doesn't have: flags, worker 0 as chief, Kubeflow's sparse clusters, messages.
// recorded_tensorflow_test.cc compares TensorFlow's own rules with it.
#include "muster/cluster/identity/task_config.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace muster::task_config_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;

constexpr char kCluster[] = R"({"chief":["c:1"],"ps":["p0:1","p1:1"],"worker":["w0:1","w1:1"]})";

std::string Config(const std::string& cluster, const std::string& type, const std::string& index) {
  return absl::StrCat("{\"cluster\":", cluster, ",\"task\":{\"type\":\"", type, "\",\"index\":", index, "}}");
}

TaskConfig Resolve(const std::string& tf_config, const TaskFlags& flags = {}) {
  return ResolveTaskConfig({tf_config, flags}).value();
}

std::string Message(const std::string& tf_config, const TaskFlags& flags = {}) {
  const auto config = ResolveTaskConfig({tf_config, flags});
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << tf_config;
  std::string message(config.status().message());
  EXPECT_THAT(message, AllOf(HasSubstr("accepted: "), Not(HasSubstr("\n"))));
  return message;
}

TEST(TaskConfig, OneProcessAlone) {
  for (const TaskConfig& config :
       {TaskConfig(), Resolve(""), Resolve(" \n"), Resolve("{}"), Resolve("", {.job_name = "worker"}),
        Resolve("", {.job_name = "worker", .task_index = "0"}),
        Resolve(Config(R"({"worker":["w:1"]})", "worker", "0"))}) {
    EXPECT_EQ(config.task(), (TaskId{"worker", 0}));
    EXPECT_TRUE(config.is_chief());
    EXPECT_FALSE(config.distributed());
    EXPECT_EQ(config.num_ps(), 0);
    EXPECT_EQ(config.num_workers(), 1);
    EXPECT_EQ(config.global_id(), 0);
    EXPECT_EQ(config.master(), "");
    EXPECT_THAT(config.worker_tasks(), ElementsAre(TaskId{"worker", 0}));
  }
}

TEST(TaskConfig, WithNeitherChiefNorMasterWorkerZeroIsTheChief) {
  const std::string cluster = R"({"ps":["p:1"],"worker":["w0:1","w1:1"],"alpha":["a:1"]})";
  const TaskConfig chief = Resolve(Config(cluster, "worker", "0"));
  EXPECT_TRUE(chief.is_chief());
  EXPECT_EQ(chief.global_id(), 0);
  EXPECT_EQ(chief.num_workers(), 2);
  const TaskConfig worker = Resolve(Config(cluster, "worker", "1"));
  EXPECT_FALSE(worker.is_chief());
  EXPECT_EQ(worker.global_id(), 1);
  EXPECT_EQ(worker.chief(), (TaskId{"worker", 0}));
  EXPECT_EQ(Resolve(Config(cluster, "alpha", "0")).global_id(), 2);
  EXPECT_EQ(Resolve(Config(cluster, "ps", "0")).global_id(), 3);
  EXPECT_FALSE(Resolve(Config(cluster, "evaluator", "0")).is_chief());
}

TEST(TaskConfig, AccessorsOfACluster) {
  const TaskConfig config = Resolve(Config(kCluster, "ps", "\"1\""));
  EXPECT_TRUE(config.is_ps());
  EXPECT_TRUE(config.distributed());
  EXPECT_EQ(config.master(), "p1:1");
  EXPECT_THAT(config.ps_addresses(), ElementsAre("p0:1", "p1:1"));
  EXPECT_THAT(config.worker_tasks(), ElementsAre(TaskId{"chief", 0}, TaskId{"worker", 0}, TaskId{"worker", 1}));
  const TaskConfig evaluator = Resolve(Config(kCluster, "evaluator", "0"));
  EXPECT_TRUE(evaluator.is_evaluator());
  EXPECT_TRUE(evaluator.cluster().empty());
  EXPECT_THAT(evaluator.worker_tasks(), ElementsAre());
  EXPECT_EQ(evaluator.global_id(), -1);
}

// Kubeflow's operator writes this for a cluster that may grow: a worker knows itself and the ps, a ps only itself.
TEST(TaskConfig, SparseClusters) {
  for (const char* key : {"cluster", "sparseCluster"}) {
    const TaskConfig worker = Resolve(absl::StrCat(
        "{\"", key,
        R"(":{"ps":["p:1"],"worker":{"3":"w3:1"}},"task":{"type":"worker","index":3},"environment":"cloud"})"));
    EXPECT_EQ(worker.master(), "w3:1");
    EXPECT_EQ(worker.num_workers(), 1);
    EXPECT_FALSE(worker.is_chief());
    EXPECT_EQ(worker.chief(), (TaskId{"worker", 0}));
    const TaskConfig ps = Resolve(absl::StrCat(
        "{\"", key, R"(":{"ps":["p:1"],"worker":{}},"task":{"type":"ps","index":0},"environment":"cloud"})"));
    EXPECT_EQ(ps.master(), "p:1");
    EXPECT_EQ(ps.num_workers(), 0);
  }
  EXPECT_THAT(Message(Config(R"({"chief":["c:1"],"worker":{"1":"w:1"}})", "worker", "0")),
              HasSubstr("task.index: 0 is out of range for job worker"));
}

TEST(TaskConfig, FlagsAlone) {
  const TaskFlags flags{.ps_hosts = "p:1", .worker_hosts = "w0:1, w1:1", .job_name = "worker", .task_index = "1"};
  const TaskConfig config = Resolve("", flags);
  EXPECT_EQ(config.cluster().ToJson(), R"({"ps":["p:1"],"worker":["w0:1","w1:1"]})");
  EXPECT_EQ(config.task(), (TaskId{"worker", 1}));
  EXPECT_EQ(config.master(), "w1:1");
  EXPECT_EQ(config.chief(), (TaskId{"worker", 0}));
}

TEST(TaskConfig, FlagsWinOverTfConfigInThreeGroups) {
  const std::string tf_config =
      R"({"cluster":)" + std::string(kCluster) + R"(,"task":{"type":"worker","index":0},"model_dir":"/environment"})";
  const TaskConfig other_task = Resolve(tf_config, {.job_name = "ps", .task_index = "1"});
  EXPECT_EQ(other_task.master(), "p1:1");
  EXPECT_EQ(other_task.model_dir(), "/environment");
  EXPECT_EQ(Resolve(tf_config, {.model_dir = "/flag"}).model_dir(), "/flag");
  const TaskFlags cluster{.ps_hosts = "q:1", .chief_hosts = "d:1", .job_name = "chief", .task_index = "0"};
  EXPECT_EQ(Resolve(tf_config, cluster).cluster().ToJson(), R"({"chief":["d:1"],"ps":["q:1"]})");
  // Half a task from each source would be a task that nobody meant.
  EXPECT_THAT(Message(tf_config, {.task_index = "1"}), HasSubstr("--job_name: not set"));
  EXPECT_THAT(Message(tf_config, {.job_name = "ps"}), HasSubstr("--task_index: not set"));
  EXPECT_THAT(Message(tf_config, {.ps_hosts = "q:1", .worker_hosts = "w:1"}), HasSubstr("--job_name: not set"));
  EXPECT_THAT(Message("{", cluster), HasSubstr("TF_CONFIG: not JSON"));
}

TEST(TaskConfig, TheIndexMayBeLeftOutWhereTheJobHasOneTask) {
  TaskFlags flags{.ps_hosts = "p:1", .worker_hosts = "w0:1,w1:1", .job_name = "ps"};
  EXPECT_EQ(Resolve("", flags).task(), (TaskId{"ps", 0}));
  flags.job_name = "worker";
  EXPECT_THAT(Message("", flags), HasSubstr("--task_index: not set, though the job worker has 2 tasks"));
  const std::string sparse = R"({"cluster":{"ps":["p:1"],"worker":{"3":"w3:1"}},"task":{"type":)";
  EXPECT_EQ(Resolve(sparse + R"("worker"}})").task(), (TaskId{"worker", 3})) << "the one that the cluster names";
  EXPECT_EQ(Resolve(sparse + R"("evaluator"}})").task(), (TaskId{"evaluator", 0}));
  EXPECT_THAT(Message(sparse + R"("boss"}})"), HasSubstr("task.type: \"boss\" is not a job"));
}

TEST(TaskConfig, AnEvaluatorInTheClusterIsNobodyToWaitFor) {
  const std::string cluster = R"({"ps":["p:1"],"chief":["c:1"],"worker":["w:1"],"evaluator":["e:1"]})";
  for (const char* job : {"ps", "chief", "worker"}) {
    const TaskConfig config = Resolve(Config(cluster, job, "0"));
    EXPECT_EQ(config.num_workers(), 2);
    EXPECT_THAT(config.worker_tasks(), ElementsAre(TaskId{"chief", 0}, TaskId{"worker", 0}));
  }
  EXPECT_TRUE(Resolve(Config(cluster, "evaluator", "0")).is_evaluator());
}

TEST(TaskConfig, ItSaysWhatItIs) {
  const TaskConfig worker = Resolve(Config(R"({"ps":["p:1"],"worker":["w0:1","w1:1"]})", "worker", "1"));
  EXPECT_EQ(worker.Summary(), "worker:1 at w1:1, in a cluster of ps:0, worker:0-1; the chief is worker:0");
  EXPECT_EQ(worker.Definition(),
            "task worker:1\n"
            "  ps:0  p:1\n"
            "  worker:0  w0:1\n"
            "* worker:1  w1:1\n");
  EXPECT_EQ(TaskConfig().Summary(), "worker:0, without a cluster");
  EXPECT_EQ(TaskConfig().Definition(), "task worker:0, the chief\n");
}

TEST(TaskConfig, MistakesInFlagsNameTheFlag) {
  const TaskFlags good{.ps_hosts = "p:1", .worker_hosts = "w:1", .job_name = "ps", .task_index = "0"};
  const auto with = [&good](std::optional<std::string> TaskFlags::*field, const char* value) {
    TaskFlags flags = good;
    flags.*field = value;
    return Message("", flags);
  };
  EXPECT_THAT(with(&TaskFlags::ps_hosts, "p:1,q"), AllOf(HasSubstr("--ps_hosts"), HasSubstr("\"q\"")));
  EXPECT_THAT(with(&TaskFlags::ps_hosts, "p:1,"), HasSubstr("--ps_hosts"));
  EXPECT_THAT(with(&TaskFlags::worker_hosts, "p:1"), AllOf(HasSubstr("--worker_hosts"), HasSubstr("that of ps:0 too")));
  EXPECT_THAT(with(&TaskFlags::chief_hosts, "c:1,d:1"),
              AllOf(HasSubstr("--chief_hosts"), HasSubstr("2 tasks of job chief")));
  EXPECT_THAT(with(&TaskFlags::job_name, "Ps"),
              AllOf(HasSubstr("--job_name: \"Ps\""), HasSubstr("ps, worker, evaluator")));
  EXPECT_THAT(with(&TaskFlags::task_index, "1"),
              AllOf(HasSubstr("--task_index: 1 is out of range"), HasSubstr("ps:0")));
  EXPECT_THAT(with(&TaskFlags::task_index, "-1"), HasSubstr("--task_index: \"-1\""));
  EXPECT_THAT(with(&TaskFlags::task_index, "0.5"), HasSubstr("--task_index: \"0.5\""));
  EXPECT_THAT(Message("", {.ps_hosts = "p:1", .job_name = "ps", .task_index = "0"}),
              HasSubstr("neither chief nor worker"));
  EXPECT_THAT(Message("", {.job_name = "ps", .task_index = "0"}), HasSubstr("--job_name: \"ps\" without a cluster"));
  EXPECT_THAT(Message("", {.task_index = "1"}), HasSubstr("--task_index: 1 without a cluster"));
}

TEST(TaskConfig, MistakesInTfConfigNameTheKeyAndTheValue) {
  EXPECT_THAT(Message("{\"a\":\n1,}"), HasSubstr("TF_CONFIG: not JSON at line 2, column 3"));
  EXPECT_THAT(Message("[]"), HasSubstr("TF_CONFIG: a list"));
  EXPECT_THAT(Message(R"({"task":[]})"), HasSubstr("TF_CONFIG task: a list"));
  EXPECT_THAT(Message(R"({"task":{"type":5}})"), HasSubstr("TF_CONFIG task.type: 5"));
  EXPECT_THAT(Message(R"({"model_dir":5})"), HasSubstr("TF_CONFIG model_dir: 5"));
  EXPECT_THAT(Message(R"({"cluster":5})"), HasSubstr("TF_CONFIG cluster: 5"));
  EXPECT_THAT(Message(R"({"cluster":{"ps":["a"]}})"), HasSubstr("TF_CONFIG cluster.ps[0]: address \"a\""));
  EXPECT_THAT(Message(Config(kCluster, "boss", "0")),
              AllOf(HasSubstr("task.type: \"boss\""), HasSubstr("chief, ps, worker")));
  EXPECT_THAT(Message(Config(kCluster, "ps", "2")), AllOf(HasSubstr("task.index: 2"), HasSubstr("ps:0-1")));
  EXPECT_THAT(Message(Config(kCluster, "ps", "-1")), HasSubstr("task.index: -1 is negative"));
  EXPECT_THAT(Message(Config(kCluster, "ps", "0.5")), HasSubstr("task.index: 0.5 is a fraction"));
  EXPECT_THAT(Message(Config(kCluster, "ps", "1e300")), HasSubstr("task.index: 1e+300 is out of range"));
  EXPECT_THAT(Message(Config(kCluster, "ps", "\"x\"")), HasSubstr("task.index: \"x\""));
  EXPECT_THAT(Message(Config(kCluster, "ps", "true")), HasSubstr("task.index: true"));
  EXPECT_THAT(Message(R"({"cluster":{"chief":["a:1"]}})"), HasSubstr("task.type: not set"));
  EXPECT_THAT(Message(Config(R"({"chief":["a:1"],"master":["b:1"]})", "chief", "0")),
              HasSubstr("both a chief and a master"));
  EXPECT_THAT(Message(Config(R"({"chief":["a:1","b:1"]})", "chief", "0")), HasSubstr("2 tasks of job chief"));
  EXPECT_THAT(Message(Config(R"({"chief":{"1":"a:1"}})", "chief", "1")), HasSubstr("not number 0"));
  EXPECT_THAT(Message(Config(R"({"master":["a:1"]})", "evaluator", "0")),
              HasSubstr("\"evaluator\" in a cluster with a master"));
}

TEST(TaskConfig, FromArgumentsLeavesTheProgramsOwn) {
  std::vector<std::string> arguments = {"--lr=1", "--model_dir", "/m"};
  EXPECT_EQ(TaskConfig::FromArguments(arguments, {}).value().model_dir(), "/m");
  EXPECT_THAT(arguments, ElementsAre("--lr=1"));
}

TEST(TaskConfig, TheDeviceIsTheFlags) {
  std::vector<std::string> none;
  EXPECT_EQ(TaskConfig::FromArguments(none, {})->device(), ComputeDevice());
  std::vector<std::string> second = {"--device=cuda:1", "--lr=1"};
  EXPECT_EQ(TaskConfig::FromArguments(second, {})->device(), (ComputeDevice{true, 1}));
  EXPECT_THAT(second, ElementsAre("--lr=1"));
  std::vector<std::string> wrong = {"--device=cuda:x"};
  const absl::Status status = TaskConfig::FromArguments(wrong, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--device: device \"cuda:x\""));
}

TEST(TaskConfigDeathTest, FromCommandLineEndsTheProcessWithTwoAndOneLine) {
  std::string words[] = {"../bin/trainer", "--task_index=7"};
  char* argv[] = {words[0].data(), words[1].data(), nullptr};
  int argc = 2;
  EXPECT_EXIT(TaskConfig::FromCommandLine(argc, argv), ::testing::ExitedWithCode(2),
              "^trainer: --task_index: 7[^\n]*\n$");
}

}  // namespace
}  // namespace muster::task_config_test
