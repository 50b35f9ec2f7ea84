#include "muster/launch/experiment/experiment_plan.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace muster::experiment_plan_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::EndsWith, ::testing::HasSubstr, ::testing::Not;

ExperimentFile OneTask() {
  ExperimentFile file;
  file.name = "muster.yml";
  file.project = "toaster";
  file.run = {"python train.py --rate {{ learning-rate }}"};
  file.run_places = {"muster.yml:3: train.run"};
  return file;
}

// ps.1, ps.2, master, worker.1, worker.2, evaluator.
ExperimentFile Distributed() {
  ExperimentFile file = OneTask();
  file.framework = Framework::kTensorflow;
  file.distributed.emplace();
  file.distributed->ps.count = 2;
  file.distributed->ps.resources.gpus = 0;
  file.distributed->workers.count = 2;
  file.distributed->workers.resources = {.cpus = 2, .mem_bytes = 1 << 30, .gpus = 2};
  file.distributed->workers.restart = {.when = RestartWhen::kAlways, .limit = 7};
  file.distributed->master.resources.gpus = 1;
  file.distributed->evaluator.count = 1;
  return file;
}

// Two workers with two processes each.
ExperimentFile Torchrun() {
  ExperimentFile file = OneTask();
  file.framework = Framework::kPytorch;
  file.torchrun.emplace();
  file.torchrun->workers.count = 2;
  file.torchrun->workers.resources = {.cpus = 3, .mem_bytes = 1000, .gpus = 2};
  file.torchrun->processes = 2;
  return file;
}

ExperimentPlanRequest RequestFor(const ExperimentFile& file) {
  ExperimentPlanRequest request;
  request.id = {.number = 4};
  request.parameters = {{"learning-rate", "0.1"}, {"num-layers", "3"}};
  request.output_dir = "/out/4";
  request.search_path = "/usr/bin:/bin";
  request.muster_command = "/opt/muster";
  request.job_token = "secret";
  request.run_id = "r1";
  for (int i = 0; i < AddressesNeeded(file); ++i) request.addresses.push_back("127.0.0.1:" + std::to_string(2000 + i));
  return request;
}

ExperimentPlan Plan(const ExperimentFile& file, const ExperimentPlanRequest& request) {
  return PlanExperiment(file, request).value();
}
ExperimentPlan Plan(const ExperimentFile& file) { return Plan(file, RequestFor(file)); }

std::string ErrorOf(const ExperimentFile& file, const ExperimentPlanRequest& request) {
  const auto plan = PlanExperiment(file, request);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << plan.status();
  return std::string(plan.status().message());
}
std::string ErrorOf(const ExperimentFile& file) { return ErrorOf(file, RequestFor(file)); }

// As a Backend reads it: later ones win.
std::map<std::string, std::string> Variables(const PlannedTask& task) {
  std::map<std::string, std::string> variables;
  for (const auto& [name, value] : task.process.environment) variables[name] = value;
  return variables;
}

std::vector<std::string> Labels(const std::vector<TaskId>& tasks) {
  std::vector<std::string> labels;
  for (const TaskId& task : tasks) labels.push_back(LabelOf(task));
  return labels;
}

nlohmann::json TfConfigOf(const PlannedTask& task) { return nlohmann::json::parse(Variables(task).at("TF_CONFIG")); }

TEST(ExperimentPlan, TasksOfAFile) {
  EXPECT_THAT(Labels(TasksOfFile(OneTask())), ElementsAre("master"));
  EXPECT_EQ(AddressesNeeded(OneTask()), 0);
  EXPECT_THAT(Labels(TasksOfFile(Distributed())),
              ElementsAre("ps.1", "ps.2", "master", "worker.1", "worker.2", "evaluator"));
  EXPECT_EQ(AddressesNeeded(Distributed()), 5);
  EXPECT_THAT(Labels(TasksOfFile(Torchrun())), ElementsAre("worker.1", "worker.2", "worker.3", "worker.4"));
  EXPECT_EQ(AddressesNeeded(Torchrun()), 1);
}

TEST(ExperimentPlan, OutputFolders) {
  const Home home("/m");
  ExperimentFile file = OneTask();
  EXPECT_EQ(OutputFolder(file, home, {.number = 4}, false), home.output({.number = 4}));
  EXPECT_EQ(OutputFolder(file, home, {.number = 4, .run = 3}, false), home.output({.number = 4, .run = 3}));
  EXPECT_EQ(OutputFolder(file, home, {.number = 4}, true), "/m/experiments/4/runs");
  file.output = "/data/out";
  EXPECT_EQ(OutputFolder(file, home, {.number = 4}, false), "/data/out/4");
  EXPECT_EQ(OutputFolder(file, home, {.number = 4}, true), "/data/out/4");
  EXPECT_EQ(OutputFolder(file, home, {.number = 4, .run = 3}, false), "/data/out/4/3");
}

TEST(ExperimentPlan, OneTaskFindsItsEnvironment) {
  ExperimentFile file = OneTask();
  file.env = {{"DATA", "/data"}, {"NUM_LAYERS", "9"}};
  const ExperimentPlan plan = Plan(file);
  ASSERT_EQ(plan.tasks.size(), 1u);
  EXPECT_EQ(plan.chief, (TaskId{kMasterJob, 0}));
  EXPECT_EQ(plan.tasks[0].process.task, plan.chief);
  EXPECT_EQ(plan.tasks[0].process.address, "");
  const auto variables = Variables(plan.tasks[0]);
  EXPECT_EQ(variables.at("LEARNING_RATE"), "0.1");
  EXPECT_EQ(variables.at("NUM_LAYERS"), "9") << "what `env` says wins over a parameter";
  EXPECT_EQ(variables.at("DATA"), "/data");
  EXPECT_EQ(variables.at("OUTPUT_DIR"), "/out/4");
  EXPECT_EQ(variables.at("EXPERIMENT_ID"), "4");
  EXPECT_EQ(variables.at("JOB_NAME"), "toaster-4");
  EXPECT_EQ(variables.at("PROJECT"), "toaster");
  EXPECT_EQ(variables.at("MUSTER_JOB_TOKEN"), "secret");
  EXPECT_EQ(variables.at("MUSTER_RUN_ID"), "r1");
  EXPECT_EQ(variables.at("PYTHONUNBUFFERED"), "1");
  for (const char* absent :
       {"TF_CONFIG", "RANK", "MASTER_ADDR", "PATH", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES", "MUSTER_STATUS_PORT"})
    EXPECT_EQ(variables.count(absent), 0u) << absent;
}

TEST(ExperimentPlan, ARunOfAGridHasItsOwnId) {
  ExperimentPlanRequest request = RequestFor(OneTask());
  request.id.run = 3;
  const auto variables = Variables(Plan(OneTask(), request).tasks[0]);
  EXPECT_EQ(variables.at("EXPERIMENT_ID"), "4.3");
  EXPECT_EQ(variables.at("JOB_NAME"), "toaster-4.3");
}

TEST(ExperimentPlan, CommandsAreFilledAndRunByAShell) {
  const ExperimentPlan plan = Plan(OneTask());
  const std::vector<std::string>& arguments = plan.tasks[0].process.arguments;
  EXPECT_THAT(arguments, ElementsAre("/bin/sh", "-c", "exec python train.py --rate 0.1\n"));
}

TEST(ExperimentPlan, EachUnknownNameInACommandIsSaidWithItsPlace) {
  ExperimentFile file = OneTask();
  file.run = {"echo {{ learning-rat }} {{ x }}", "true", "echo {{ y }}"};
  file.run_places = {"muster.yml:4: train.run[1]", "muster.yml:5: train.run[2]", "muster.yml:6: train.run[3]"};
  EXPECT_THAT(ErrorOf(file), AllOf(HasSubstr("muster.yml:4: train.run[1]: {{ learning-rat }}: there is no"),
                                   HasSubstr("\nmuster.yml:4: train.run[1]: {{ x }}: there is no"),
                                   HasSubstr("\nmuster.yml:6: train.run[3]: {{ y }}: there is no")));
}

TEST(ExperimentPlan, WithoutAnEvaluatorTheMasterIsTheClustersMaster) {
  ExperimentFile file = Distributed();
  file.distributed->evaluator.count = 0;
  const nlohmann::json config = TfConfigOf(Plan(file).tasks[2]);
  EXPECT_EQ(config["cluster"]["master"], nlohmann::json({"127.0.0.1:2002"}));
  EXPECT_EQ(config["task"]["type"], "master");
}

TEST(ExperimentPlan, TheClusterCountsFromZeroAndLeavesTheEvaluatorOut) {
  const ExperimentPlan plan = Plan(Distributed());
  EXPECT_EQ(LabelOf(plan.chief), "master");
  ASSERT_EQ(plan.tasks.size(), 6u);
  const nlohmann::json cluster = {{"ps", {"127.0.0.1:2000", "127.0.0.1:2001"}},
                                  {"chief", {"127.0.0.1:2002"}},
                                  {"worker", {"127.0.0.1:2003", "127.0.0.1:2004"}}};
  const std::vector<std::pair<std::string, int>> expected = {{"ps", 0},     {"ps", 1},     {"chief", 0},
                                                             {"worker", 0}, {"worker", 1}, {"evaluator", 0}};
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const nlohmann::json config = TfConfigOf(plan.tasks[i]);
    EXPECT_EQ(config["cluster"], cluster);
    EXPECT_EQ(config["environment"], "cloud");
    EXPECT_EQ(config["task"]["type"], expected[i].first);
    EXPECT_EQ(config["task"]["index"], expected[i].second);
    const std::string address = i < 5 ? "127.0.0.1:" + std::to_string(2000 + i) : "";
    EXPECT_EQ(plan.tasks[i].process.address, address);
    EXPECT_EQ(plan.tasks[i].process.arguments[0], "/bin/sh") << "a TensorFlow ps is the program";
  }
}

TEST(ExperimentPlan, ARoleHasItsResourcesAndRestarts) {
  const ExperimentPlan plan = Plan(Distributed());
  EXPECT_EQ(plan.tasks[0].resources.gpus, 0);
  EXPECT_EQ(plan.tasks[2].resources.gpus, 1);
  EXPECT_EQ(plan.tasks[3].resources, (Resources{.cpus = 2, .mem_bytes = 1 << 30, .gpus = 2}));
  EXPECT_EQ(plan.tasks[4].restart.when, RestartWhen::kAlways);
  EXPECT_EQ(plan.tasks[4].restart.limit, 7);
  EXPECT_EQ(plan.tasks[2].restart.when, RestartWhen::kOnFailure);
}

TEST(ExperimentPlan, WhereTasksRunAndWhatTheySeeAndMayUse) {
  ExperimentFile file = Distributed();
  file.volumes = {{.host = "/data", .path = "/mnt/data"}, {.host = "/scratch", .path = "/scratch", .writable = true}};
  ExperimentPlanRequest request = RequestFor(file);
  request.work_folder = "/runs/4/files";
  const ExperimentPlan plan = Plan(file, request);
  for (const PlannedTask& task : plan.tasks) {
    EXPECT_EQ(task.process.directory, "/runs/4/files");
    ASSERT_EQ(task.process.mounts.size(), 2u);
    EXPECT_EQ(task.process.mounts[0].host, "/data");
    EXPECT_EQ(task.process.mounts[0].path, "/mnt/data");
    EXPECT_FALSE(task.process.mounts[0].writable);
    EXPECT_TRUE(task.process.mounts[1].writable);
  }
  EXPECT_EQ(plan.tasks[3].process.limits.cpus, 2);
  EXPECT_EQ(plan.tasks[3].process.limits.mem_bytes, 1 << 30);
  EXPECT_FALSE(plan.tasks[0].process.limits.mem_bytes.has_value());
}

TEST(ExperimentPlan, ATaskWithACpuLimitComputesWithAsManyThreads) {
  ExperimentFile file = Distributed();
  file.distributed->master.resources.cpus = 1.5;
  ExperimentPlanRequest request = RequestFor(file);
  EXPECT_EQ(Variables(Plan(file, request).tasks[3]).at("OMP_NUM_THREADS"), "2");
  EXPECT_EQ(Variables(Plan(file, request).tasks[2]).at("OMP_NUM_THREADS"), "2");
  EXPECT_EQ(Variables(Plan(file, request).tasks[0]).count("OMP_NUM_THREADS"), 0) << "it has no limit";
  request.has_threads = true;
  EXPECT_EQ(Variables(Plan(file, request).tasks[3]).count("OMP_NUM_THREADS"), 0) << "the user has chosen";
  request.has_threads = false;
  file.env.emplace_back("OMP_NUM_THREADS", "7");
  EXPECT_EQ(Variables(Plan(file, request).tasks[3]).at("OMP_NUM_THREADS"), "7") << "the file has chosen";
}

TEST(ExperimentPlan, ProcessesOfTorchrunLearnHowManyShareTheirHost) {
  ExperimentFile file = Torchrun();
  ExperimentPlanRequest request = RequestFor(file);
  EXPECT_EQ(Variables(Plan(file, request).tasks[0]).count("MUSTER_PROCESSES_ON_HOST"), 0) << "they have cpus";
  file.torchrun->workers.resources.cpus.reset();
  EXPECT_EQ(Variables(Plan(file, request).tasks[0]).at("MUSTER_PROCESSES_ON_HOST"), "4");
  request.placement = {{{kWorkerJob, 0}, "a"}, {{kWorkerJob, 1}, "a"}, {{kWorkerJob, 2}, "b"}, {{kWorkerJob, 3}, "c"}};
  EXPECT_EQ(Variables(Plan(file, request).tasks[1]).at("MUSTER_PROCESSES_ON_HOST"), "2");
  EXPECT_EQ(Variables(Plan(file, request).tasks[2]).count("MUSTER_PROCESSES_ON_HOST"), 0) << "it has its host alone";
}

TEST(ExperimentPlan, APsOfOurOwnIsTheCommand) {
  ExperimentFile file = Distributed();
  file.framework = Framework::kMuster;
  ExperimentPlanRequest request = RequestFor(file);
  request.status_ports = {3000, 3001, 3002, 3003, 3004, 3005};
  const ExperimentPlan plan = Plan(file, request);
  EXPECT_THAT(plan.tasks[0].process.arguments, ElementsAre("/opt/muster", "ps"));
  EXPECT_THAT(plan.tasks[1].process.arguments, ElementsAre("/opt/muster", "ps"));
  EXPECT_EQ(plan.tasks[2].process.arguments[0], "/bin/sh");
  EXPECT_EQ(Variables(plan.tasks[0]).at("MUSTER_STATUS_PORT"), "3000");
  EXPECT_EQ(Variables(plan.tasks[5]).at("MUSTER_STATUS_PORT"), "3005");
}

TEST(ExperimentPlan, TorchrunsVariables) {
  const ExperimentPlan plan = Plan(Torchrun());
  EXPECT_EQ(LabelOf(plan.chief), "worker.1");
  ASSERT_EQ(plan.tasks.size(), 4u);
  EXPECT_EQ(plan.tasks[0].process.address, "127.0.0.1:2000");
  EXPECT_EQ(plan.tasks[1].process.address, "");
  const auto variables = Variables(plan.tasks[3]);
  const std::map<std::string, std::string> expected = {
      {"RANK", "3"},           {"LOCAL_RANK", "1"},         {"WORLD_SIZE", "4"},      {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "1"},     {"ROLE_RANK", "3"},          {"ROLE_WORLD_SIZE", "4"}, {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", "2000"}, {"TORCHELASTIC_RUN_ID", "4"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(variables.at(name), value) << name;
  EXPECT_EQ(variables.count("TF_CONFIG"), 0u);
  EXPECT_EQ(Variables(plan.tasks[2]).at("LOCAL_RANK"), "0");
  EXPECT_EQ(plan.tasks[0].resources, (Resources{.cpus = 1.5, .mem_bytes = 500, .gpus = 2}));
}

TEST(ExperimentPlan, AVirtualEnvironmentComesFirstOnThePath) {
  ExperimentFile file = OneTask();
  ExperimentPlanRequest request = RequestFor(file);
  request.environment_folder = "/venv";
  auto variables = Variables(Plan(file, request).tasks[0]);
  EXPECT_EQ(variables["PATH"], "/venv/bin:/usr/bin:/bin");
  EXPECT_EQ(variables["VIRTUAL_ENV"], "/venv");
  file.env = {{"PATH", "/mine"}};
  EXPECT_EQ(Variables(Plan(file, request).tasks[0])["PATH"], "/venv/bin:/mine");
}

TEST(ExperimentPlan, WhatMusterSetsItselfIsRefused) {
  ExperimentFile file = OneTask();
  file.env = {{"TF_CONFIG", "{}"}};
  EXPECT_THAT(ErrorOf(file), HasSubstr("train.env.TF_CONFIG"));
  ExperimentPlanRequest request = RequestFor(OneTask());
  request.parameters["output-dir"] = "/tmp";
  EXPECT_THAT(ErrorOf(OneTask(), request), HasSubstr("train.parameters.output-dir: the variable OUTPUT_DIR"));
  request = RequestFor(OneTask());
  request.parameters["path"] = "/tmp";
  EXPECT_THAT(ErrorOf(OneTask(), request), HasSubstr("train.parameters.path"));
  request = RequestFor(Torchrun());
  request.parameters["rank"] = "8";
  EXPECT_THAT(ErrorOf(Torchrun(), request), HasSubstr("train.parameters.rank: the variable RANK"));
  request = RequestFor(OneTask());
  request.parameters["rank"] = "8";
  EXPECT_EQ(Variables(Plan(OneTask(), request).tasks[0]).at("RANK"), "8") << "nobody else says RANK here";
}

TEST(ExperimentPlan, AllThatTorchrunTellsATaskIsRefused) {
  ExperimentFile one_task = OneTask();
  one_task.resources.cpus = 3;  // a user may say otherwise about OMP_NUM_THREADS
  const auto alone = Variables(Plan(one_task).tasks[0]);
  for (const auto& [name, value] : Variables(Plan(Torchrun()).tasks[0]))
    EXPECT_TRUE(IsExperimentVariable(name, true) || alone.contains(name)) << name;
}

TEST(ExperimentPlan, EveryTaskHasGpusOfItsOwn) {
  ExperimentPlan plan = Plan(Distributed());
  ASSERT_EQ(GpusNeeded(plan), 5);
  GiveGpus(plan, {0, 1, 2, 5, 7}, false);
  std::vector<std::string> devices;
  for (const PlannedTask& task : plan.tasks) devices.push_back(VisibleGpus(task));
  EXPECT_THAT(devices, ElementsAre("", "", "0", "1,2", "5,7", ""));
  for (const PlannedTask& task : plan.tasks)
    EXPECT_EQ(Variables(task).count("CUDA_VISIBLE_DEVICES"), 1u) << "whoever has none must not see the others'";
}

TEST(ExperimentPlan, TheProcessesOfATorchrunWorkerShareItsGpus) {
  ExperimentPlan plan = Plan(Torchrun());
  ASSERT_EQ(GpusNeeded(plan), 4);
  GiveGpus(plan, {0, 1, 2, 3}, false);
  std::vector<std::string> devices;
  for (const PlannedTask& task : plan.tasks) devices.push_back(VisibleGpus(task));
  EXPECT_THAT(devices, ElementsAre("0,1", "0,1", "2,3", "2,3"));
}

TEST(ExperimentPlan, WithoutGpus) {
  ExperimentPlanRequest request = RequestFor(Distributed());
  request.no_gpus = true;
  ExperimentPlan plan = Plan(Distributed(), request);
  EXPECT_EQ(GpusNeeded(plan), 0);
  GiveGpus(plan, {}, true);
  for (const PlannedTask& task : plan.tasks) EXPECT_EQ(Variables(task).at("CUDA_VISIBLE_DEVICES"), "");
  // No task asks for GPUs and the user doesn't forbid them: the user's own variable stays.
  plan = Plan(OneTask());
  GiveGpus(plan, {}, false);
  EXPECT_EQ(Variables(plan.tasks[0]).count("CUDA_VISIBLE_DEVICES"), 0u);
}

TEST(ExperimentPlan, WhatCommandsAreIsKeptFromTheShellsScript) {
  EXPECT_THAT(ShellScript({"echo 'a'"}), HasSubstr("eval 'echo '\\''a'\\'''"));
  EXPECT_EQ(ShellScript({}), "");
}

TEST(ExperimentPlan, TheShellBecomesACommandThatIsOneProgramAlone) {
  EXPECT_EQ(ShellScript({" python train.py"}), "exec python train.py\n");
  EXPECT_THAT(ShellScript({"train() { python train.py; }", "train"}), Not(HasSubstr("exec")));
  EXPECT_THAT(ShellScript({"trap 'rm -r scratch' EXIT", "python train.py"}), Not(HasSubstr("exec")));
  EXPECT_THAT(ShellScript({"python train.py", "echo done"}), Not(HasSubstr("exec")));
}

TEST(ExperimentPlan, ValuesThatAShellWouldTakeApartAreInTheEnvironment) {
  ExperimentFile file = OneTask();
  file.run = {"train {{ rate }} {{ data }}"};
  file.run_places = {"muster.yml:3: train.run"};
  ExperimentPlanRequest request = RequestFor(file);
  request.parameters = {{"rate", "0.1"}, {"data", "$(touch x)"}};
  const ExperimentPlan plan = Plan(file, request);
  EXPECT_EQ(plan.tasks[0].process.arguments[2], "exec train 0.1 \"${MUSTER_VALUE_DATA}\"\n");
  EXPECT_EQ(Variables(plan.tasks[0]).at("MUSTER_VALUE_DATA"), "$(touch x)");
  EXPECT_EQ(Variables(plan.tasks[0]).count("MUSTER_VALUE_RATE"), 0u);
}

TEST(ExperimentPlan, EveryRunsCommandsAreChecked) {
  ExperimentFile file = OneTask();
  file.run = {"train $(({{ rate }} + 1))"};
  file.run_places = {"muster.yml:3: train.run"};
  EXPECT_TRUE(CheckCommands(file, {{{"rate", "1"}}, {{"rate", "2"}}}).ok());
  const absl::Status refused = CheckCommands(file, {{{"rate", "1"}}, {{"rate", "x[$(y)]"}}});
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("muster.yml:3: train.run: {{ rate }}"), HasSubstr("in arithmetic")));
}

TEST(GiveGpusOnHosts, EachHostNumbersItsOwn) {
  const ExperimentFile file = Distributed();
  ExperimentPlan plan = PlanExperiment(file, RequestFor(file)).value();
  std::map<TaskId, std::string> placement;
  for (const PlannedTask& task : plan.tasks) placement[task.process.task] = "a";
  placement[{kWorkerJob, 1}] = "b";
  GiveGpusOnHosts(plan, placement, /*no_gpus=*/false);
  std::map<TaskId, std::string> gpus;
  for (const PlannedTask& task : plan.tasks) gpus[task.process.task] = VisibleGpus(task);
  EXPECT_EQ(gpus[TaskId({kMasterJob, 0})], "0");
  EXPECT_EQ(gpus[TaskId({kWorkerJob, 0})], "1,2");
  EXPECT_EQ(gpus[TaskId({kWorkerJob, 1})], "0,1");
  EXPECT_EQ(gpus[TaskId({kPsJob, 0})], "");
}

// The chief, which had a device on host a, has ended, and worker:1 comes there.
TEST(GiveGpusAgain, AMovedTaskHasTheFirstOfItsHostAndTheOthersKeepTheirs) {
  const ExperimentFile file = Distributed();
  const ExperimentPlan unplaced = PlanExperiment(file, RequestFor(file)).value();
  std::map<TaskId, std::string> placement;
  for (const PlannedTask& task : unplaced.tasks) placement[task.process.task] = "b";
  placement[{kMasterJob, 0}] = "a";
  ExperimentPlan before = unplaced, plan = unplaced;
  GiveGpusOnHosts(before, placement, /*no_gpus=*/false);
  GiveGpusAgain(plan, before, {kWorkerJob, 1}, /*no_gpus=*/false);
  std::map<TaskId, std::string> gpus;
  for (const PlannedTask& task : plan.tasks) gpus[task.process.task] = VisibleGpus(task);
  EXPECT_EQ(gpus[TaskId({kMasterJob, 0})], "0");
  EXPECT_EQ(gpus[TaskId({kWorkerJob, 0})], "0,1");
  EXPECT_EQ(gpus[TaskId({kWorkerJob, 1})], "0,1");
  EXPECT_EQ(gpus[TaskId({kPsJob, 0})], "");
}

}  // namespace
}  // namespace muster::experiment_plan_test
