// Tests which source of a role counts where several say something, and what is said about it.
#include "muster/cluster/identity/role_source.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "muster/cluster/identity/task_config.h"

namespace muster::role_source_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::StartsWith;

constexpr char kTfConfig[] = R"({"cluster":{"ps":["p:1"],"worker":["w:1"]},"task":{"type":"ps","index":0}})";

SlurmVariables Slurm(int proc = 0) {
  return {.job_id = "17",
          .step_id = "0",
          .step_num_tasks = "4",
          .step_nodelist = "node1",
          .step_counts = "4",
          .proc_id = absl::StrCat(proc)};
}

TorchrunVariables Torchrun(int rank = 0) {
  return {.rank = absl::StrCat(rank),
          .world_size = "3",
          .local_rank = absl::StrCat(rank),
          .local_world_size = "3",
          .master_port = "29500"};
}

TaskConfig Resolved(const TaskConfigInputs& inputs) {
  const auto config = ResolveTaskConfig(inputs);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(TaskConfig());
}

std::string Mistake(const TaskConfigInputs& inputs) {
  const auto config = ResolveTaskConfig(inputs);
  EXPECT_TRUE(absl::IsInvalidArgument(config.status()));
  return std::string(config.status().message());
}

TEST(RoleSource, SlurmsTasksAreAChiefWorkersAndTheLastOnesPs) {
  std::vector<std::string> tasks;
  for (int proc = 0; proc < 4; ++proc)
    tasks.push_back(Resolved({.flags = {.ps = "1"}, .roles = {.slurm = Slurm(proc)}}).task().ToString());
  EXPECT_EQ(tasks, (std::vector<std::string>{"chief:0", "worker:0", "worker:1", "ps:0"}));
  const TaskConfig config = Resolved({.flags = {.ps = "1", .model_dir = "/m"}, .roles = {.slurm = Slurm(3)}});
  EXPECT_EQ(config.master(), "127.0.0.1:21091");
  EXPECT_EQ(config.model_dir(), "/m");
  EXPECT_EQ(config.notice(),
            "role from Slurm: task 3 of 4 of step 17.0 is ps:0 at 127.0.0.1:21091 (chief:0, ps:0, worker:0-1)");
}

TEST(RoleSource, NumbersMayComeFromTheEnvironment) {
  const TaskConfig config = Resolved({.roles = {.ps = "2", .first_port = "5000", .slurm = Slurm(3)}});
  EXPECT_EQ(config.task().ToString(), "ps:1");
  EXPECT_EQ(config.master(), "127.0.0.1:5003");
  EXPECT_EQ(Resolved({.flags = {.ps = "1"}, .roles = {.ps = "2", .slurm = Slurm(3)}}).num_ps(), 1);
}

TEST(RoleSource, ABusyPortNamesTheWayOut) {
  const TaskConfig config = Resolved({.roles = {.slurm = Slurm()}});
  EXPECT_THAT(config.ExplainBusyPort(absl::AlreadyExistsError("port 21088 is in use")).message(),
              AllOf(HasSubstr("port 21088 is in use"), HasSubstr("begin at 21088"), HasSubstr("--first_port")));
  EXPECT_EQ(config.ExplainBusyPort(absl::NotFoundError("x")), absl::NotFoundError("x"));
  EXPECT_EQ(TaskConfig().ExplainBusyPort(absl::AlreadyExistsError("x")), absl::AlreadyExistsError("x"));
}

TEST(RoleSource, TorchrunsProcessesOnOneHost) {
  const TaskConfig config = Resolved({.flags = {.ps = "1"}, .roles = {.torchrun = Torchrun(2)}});
  EXPECT_EQ(config.task().ToString(), "ps:0");
  EXPECT_EQ(config.master(), absl::StrCat("127.0.0.1:", FirstPortOf(29500, 3) + 2));
  EXPECT_THAT(config.notice(), StartsWith("role from torchrun: rank 2 of 3 is ps:0 at "));
  TorchrunVariables one = Torchrun();
  one.world_size = one.local_world_size = "1";
  EXPECT_EQ(Resolved({.roles = {.torchrun = one}}).notice(), "alone: torchrun has one process (WORLD_SIZE=1)");
}

TEST(RoleSource, TorchrunsMistakes) {
  const auto with = [](std::optional<std::string> TorchrunVariables::*member, const std::string& value) {
    TorchrunVariables variables = Torchrun();
    variables.*member = value;
    return Mistake({.roles = {.torchrun = variables}});
  };
  EXPECT_THAT(with(&TorchrunVariables::world_size, "6"),
              AllOf(HasSubstr("WORLD_SIZE: 6 processes, 3 of them"), HasSubstr("MASTER_ADDR"), HasSubstr("=none")));
  EXPECT_THAT(with(&TorchrunVariables::rank, "3"), HasSubstr("RANK: \"3\""));
  EXPECT_THAT(with(&TorchrunVariables::rank, "x"), HasSubstr("RANK: \"x\""));
  EXPECT_THAT(with(&TorchrunVariables::local_rank, "1"), HasSubstr("LOCAL_RANK: 1 on the only host"));
  EXPECT_THAT(with(&TorchrunVariables::local_world_size, "4"), HasSubstr("LOCAL_WORLD_SIZE: \"4\""));
  EXPECT_THAT(with(&TorchrunVariables::master_port, ""), HasSubstr("MASTER_PORT: \"\""));
}

TEST(RoleSource, VariablesThatAScriptSetsForItselfAreNotTorchruns) {
  TorchrunVariables script = Torchrun();
  script.local_world_size.reset();
  EXPECT_EQ(Resolved({.roles = {.torchrun = script}}).notice(), "");
  EXPECT_EQ(Resolved({.roles = {.torchrun = script, .slurm = Slurm(1)}}).task().ToString(), "worker:0");
  EXPECT_THAT(Mistake({.roles = {.resolve = "torchrun", .torchrun = script}}),
              HasSubstr("MUSTER_RESOLVE=torchrun, but LOCAL_WORLD_SIZE isn't set"));
}

TEST(RoleSource, FlagsThenTfConfigThenTorchrunThenSlurm) {
  const RoleVariables all = {.torchrun = Torchrun(1), .slurm = Slurm(2)};
  const TaskFlags flags = {.ps_hosts = "f:1", .worker_hosts = "f:2", .job_name = "worker"};
  const TaskConfig by_flags = Resolved({.tf_config = kTfConfig, .flags = flags, .roles = all});
  EXPECT_EQ(by_flags.master(), "f:2");
  EXPECT_EQ(by_flags.notice(), "role from flags; not used: TF_CONFIG, torchrun's variables, Slurm's step");
  const TaskConfig by_tf = Resolved({.tf_config = kTfConfig, .roles = all});
  EXPECT_EQ(by_tf.master(), "p:1");
  EXPECT_EQ(by_tf.notice(),
            "role from TF_CONFIG; not used: torchrun's variables (MUSTER_RESOLVE=torchrun), "
            "Slurm's step (MUSTER_RESOLVE=slurm)");
  const TaskConfig by_torchrun = Resolved({.roles = all});
  EXPECT_THAT(by_torchrun.notice(), AllOf(StartsWith("role from torchrun: rank 1 of 3 is worker:0"),
                                          HasSubstr("; not used: Slurm's step (MUSTER_RESOLVE=slurm)")));
  EXPECT_EQ(Resolved({.roles = {.slurm = Slurm(2)}}).task().ToString(), "worker:1");
  EXPECT_EQ(Resolved({.tf_config = kTfConfig}).notice(), "");
  EXPECT_EQ(Resolved({.flags = flags}).notice(), "");
  EXPECT_EQ(Resolved({}).notice(), "");
}

TEST(RoleSource, ATfConfigThatSaysNothingAboutRolesLeavesThemToOthers) {
  const TaskConfig config = Resolved({.tf_config = R"({"model_dir":"/m"})", .roles = {.slurm = Slurm(1)}});
  EXPECT_EQ(config.task().ToString(), "worker:0");
  EXPECT_EQ(config.model_dir(), "/m");
  EXPECT_FALSE(Resolved({.tf_config = R"({"cluster":{}})", .roles = {.slurm = Slurm(1)}}).distributed())
      << "an empty cluster is an answer";
}

TEST(RoleSource, MusterResolveChooses) {
  const auto by = [](const std::string& word) {
    return Resolved({.tf_config = kTfConfig, .roles = {.resolve = word, .torchrun = Torchrun(1), .slurm = Slurm(2)}});
  };
  EXPECT_EQ(by("tf_config").task().ToString(), "ps:0");
  EXPECT_THAT(by("torchrun").notice(), StartsWith("role from torchrun: rank 1 of 3 is worker:0"));
  EXPECT_THAT(by("slurm").notice(), AllOf(StartsWith("role from Slurm: task 2 of 4 of step 17.0 is worker:1"),
                                          HasSubstr("TF_CONFIG (MUSTER_RESOLVE=tf_config)")));
  EXPECT_FALSE(by("none").distributed());
  EXPECT_EQ(by("none").task().ToString(), "worker:0");
  EXPECT_THAT(by("none").notice(), StartsWith("alone: MUSTER_RESOLVE=none; not used: TF_CONFIG"));
  EXPECT_EQ(by("").task().ToString(), "ps:0");
}

TEST(RoleSource, AChosenSourceMustBeThere) {
  EXPECT_THAT(Mistake({.roles = {.resolve = "srun"}}),
              AllOf(HasSubstr("MUSTER_RESOLVE: \"srun\""), HasSubstr("accepted: none, tf_config, torchrun, slurm")));
  EXPECT_THAT(Mistake({.roles = {.resolve = "tf_config"}}), HasSubstr("=tf_config, but TF_CONFIG isn't set"));
  EXPECT_THAT(Mistake({.roles = {.resolve = "torchrun"}}), HasSubstr("=torchrun, but RANK isn't set"));
  EXPECT_THAT(Mistake({.roles = {.resolve = "slurm"}}), HasSubstr("=slurm, but SLURM_JOB_ID isn't set"));
  EXPECT_THAT(Mistake({.roles = {.resolve = "slurm", .slurm = {.job_id = "7"}}}),
              HasSubstr("=slurm, but srun didn't start this process in Slurm's job 7"));
}

TEST(RoleSource, AnAllocationWithoutTasksIsAloneAndSaysSo) {
  const TaskConfig config = Resolved({.flags = {.ps = "1"}, .roles = {.slurm = {.job_id = "7"}}});
  EXPECT_FALSE(config.distributed());
  EXPECT_EQ(config.notice(), "alone: srun didn't start this process in Slurm's job 7; not used: --ps 1");
}

TEST(RoleSource, AnIncompleteStepIsNeverSilentlyManyProcessesAlone) {
  SlurmVariables incomplete = Slurm();
  incomplete.step_nodelist.reset();
  EXPECT_THAT(Mistake({.roles = {.slurm = incomplete}}), HasSubstr("SLURM_STEP_NODELIST: not set"));
  EXPECT_EQ(Resolved({.tf_config = kTfConfig, .roles = {.slurm = incomplete}}).task().ToString(), "ps:0");
}

TEST(RoleSource, NodesOfSeveralNamesNeedASecret) {
  SlurmVariables two = Slurm(3);
  two.step_nodelist = "n[1-2]";
  two.step_counts = "2(x2)";
  EXPECT_THAT(Mistake({.roles = {.slurm = two}}), HasSubstr("export MUSTER_JOB_TOKEN=$(openssl rand -hex 32)"));
  const TaskConfig config = Resolved({.roles = {.has_token = true, .slurm = two}});
  EXPECT_EQ(config.cluster().ToJson(), R"({"chief":["n1:21088"],"worker":["n1:21089","n2:21088","n2:21089"]})");
  EXPECT_EQ(config.master(), "n2:21089");
}

TEST(RoleSource, ALaunchersTaskIsWhatTheLauncherSays) {
  const RoleVariables below = {.has_launcher = true, .torchrun = {}, .slurm = Slurm(1)};
  EXPECT_EQ(Resolved({.tf_config = kTfConfig, .roles = below}).notice(), "") << "what is around it is no news";
  EXPECT_EQ(Resolved({.roles = below}).notice(),
            "alone: muster's launcher has started this task without others; not used: Slurm's step "
            "(MUSTER_RESOLVE=slurm)");
  RoleVariables exported = below;
  exported.resolve = "slurm";
  EXPECT_EQ(Resolved({.tf_config = kTfConfig, .roles = exported}).notice(),
            "role from TF_CONFIG; not used: MUSTER_RESOLVE=slurm");
  EXPECT_EQ(Resolved({.roles = exported}).task().ToString(), "worker:0") << "an experiment's task that runs srun";
  const RoleVariables torch = {.has_launcher = true, .torchrun = Torchrun(1), .slurm = Slurm(1)};
  EXPECT_EQ(Resolved({.roles = torch}).num_workers(), 3);
}

TEST(RoleSource, NumbersThatAreNoneAreRefusedAndThoseWithoutUseAreNamed) {
  EXPECT_THAT(Mistake({.flags = {.ps = "4"}, .roles = {.slurm = Slurm()}}), HasSubstr("--ps: 4 of 4 tasks"));
  EXPECT_THAT(Mistake({.flags = {.ps = "x"}}), HasSubstr("--ps: \"x\"; accepted: a number from 0"));
  EXPECT_THAT(Mistake({.roles = {.ps = "-1", .slurm = Slurm()}}), HasSubstr("MUSTER_PS: \"-1\""));
  EXPECT_THAT(Mistake({.flags = {.first_port = "0"}}), HasSubstr("--first_port: \"0\"; accepted: a number from 1"));
  EXPECT_THAT(Mistake({.roles = {.first_port = "65536", .slurm = Slurm()}}), HasSubstr("MUSTER_FIRST_PORT: \"65536\""));
  EXPECT_EQ(Resolved({.tf_config = kTfConfig, .flags = {.ps = "1", .first_port = "5"}}).notice(),
            "role from TF_CONFIG; not used: --ps 1, --first_port 5");
  EXPECT_EQ(Resolved({.flags = {.ps = "1"}}).notice(), "alone; not used: --ps 1");
  for (const char* text : {"1", "auto"})
    EXPECT_EQ(Resolved({.roles = {.ps = text, .first_port = text}}).notice(), "") << "it is for others";
  EXPECT_EQ(Resolved({.tf_config = kTfConfig, .flags = {.job_name = "worker", .task_index = "0"}}).notice(), "")
      << "the cluster is TF_CONFIG's";
}

}  // namespace
}  // namespace muster::role_source_test
