#include "muster/launch/foreground/cluster_plan.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "muster/cluster/identity/task_config.h"

namespace muster::cluster_plan_test {
namespace {

using ::testing::ElementsAre, ::testing::EndsWith, ::testing::HasSubstr, ::testing::Not, ::testing::StartsWith;

ClusterRequest Request() {
  ClusterRequest request;
  request.ps = 1;
  request.workers = 2;
  request.chiefs = 1;
  request.program = {"./train", "--rate", "0.1"};
  return request;
}

ClusterPlan Plan(const ClusterRequest& request) {
  std::vector<std::string> addresses;
  for (int i = 0; i < AddressesNeeded(request); ++i) addresses.push_back("127.0.0.1:" + std::to_string(2000 + i));
  return PlanCluster(request, addresses, "secret", "run-1").value();
}

std::map<std::string, std::string> Environment(const ProcessSpec& process) {
  return {process.environment.begin(), process.environment.end()};
}

std::string ErrorOf(const ClusterRequest& request) {
  const absl::Status status = ValidateRequest(request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(ClusterPlan, EveryTaskIsToldWhoItIs) {
  ClusterRequest request = Request();
  request.evaluator = true;
  request.model_dir = "/tmp/model";
  request.environment = {"A=1", "B=x=y", "C="};
  const ClusterPlan plan = Plan(request);
  EXPECT_EQ(plan.chief, (TaskId{kChiefJob, 0}));
  std::vector<std::string> tasks;
  for (const ProcessSpec& process : plan.processes) {
    tasks.push_back(process.task.ToString());
    auto environment = Environment(process);
    EXPECT_EQ(environment["MUSTER_JOB_TOKEN"], "secret");
    EXPECT_EQ(environment["MUSTER_RUN_ID"], "run-1");
    EXPECT_EQ(environment["A"], "1");
    EXPECT_EQ(environment["B"], "x=y");
    EXPECT_EQ(environment["C"], "");
    EXPECT_THAT(process.arguments, ElementsAre("./train", "--rate", "0.1"));
    // Checks what was written with the code that reads TF_CONFIG.
    const auto config = ResolveTaskConfig({.tf_config = environment["TF_CONFIG"]}).value();
    EXPECT_EQ(config.task(), process.task);
    EXPECT_EQ(config.master(), process.address);
    EXPECT_EQ(config.model_dir(), "/tmp/model");
    if (!config.is_evaluator()) {
      EXPECT_EQ(config.num_workers(), 3);
      EXPECT_EQ(config.num_ps(), 1);
    }
    const auto json = nlohmann::json::parse(environment["TF_CONFIG"]);
    EXPECT_FALSE(json["cluster"].contains("evaluator"));
    EXPECT_EQ(json["cluster"]["worker"], nlohmann::json({"127.0.0.1:2002", "127.0.0.1:2003"}));
  }
  EXPECT_THAT(tasks, ElementsAre("ps:0", "chief:0", "worker:0", "worker:1", "evaluator:0"));
}

TEST(ClusterPlan, TheJobsProcessorsAreToldToEveryTask) {
  ClusterRequest request = Request();
  EXPECT_EQ(Environment(Plan(request).processes[0]).count("MUSTER_PROCESSORS"), 0);
  request.processors = 8;
  for (const ProcessSpec& process : Plan(request).processes)
    EXPECT_EQ(Environment(process)["MUSTER_PROCESSORS"], "8") << process.task.ToString();
  request.processors = 0;
  EXPECT_THAT(ErrorOf(request), HasSubstr("--processors 0: accepted are 1 and more"));
}

TEST(ClusterPlan, WithoutAChiefWorkerZeroIsIt) {
  ClusterRequest request = Request();
  request.chiefs = 0;
  EXPECT_EQ(Plan(request).chief, (TaskId{kWorkerJob, 0}));
}

TEST(ClusterPlan, ParameterServersMayBeTheCommandsOwn) {
  ClusterRequest request = Request();
  request.muster_ps = true;
  request.muster_command = "/bin/muster";
  const ClusterPlan plan = Plan(request);
  EXPECT_THAT(plan.processes[0].arguments, ElementsAre("/bin/muster", "ps"));
  EXPECT_THAT(plan.processes[1].arguments, ElementsAre("./train", "--rate", "0.1"));
}

TEST(ClusterPlan, RefusesWhatMakesNoCluster) {
  ClusterRequest request = Request();
  request.chiefs = 2;
  EXPECT_THAT(ErrorOf(request), HasSubstr("--chief 2: accepted are 0 to 1"));
  request = Request();
  request.ps = -1;
  EXPECT_THAT(ErrorOf(request), HasSubstr("--ps -1: accepted are 0 to 999"));
  request = Request();
  request.workers = 1000;
  EXPECT_THAT(ErrorOf(request), HasSubstr("--workers 1000"));
  request.workers = request.chiefs = 0;
  EXPECT_THAT(ErrorOf(request), HasSubstr("nobody would train"));
  request = Request();
  request.program.clear();
  EXPECT_THAT(ErrorOf(request), HasSubstr("no program given"));
  for (const std::string bad :
       {"X", "=1", "TF_CONFIG=1", "MUSTER_JOB_TOKEN=1", "MUSTER_RUN_ID=1", "MUSTER_AGENT_ID=1"}) {
    request = Request();
    request.environment = {bad};
    EXPECT_THAT(ErrorOf(request), HasSubstr("--env"));
  }
}

TEST(ClusterPlan, ANameAloneHasTheValueThatItHasHere) {
  ClusterRequest request = Request();
  const std::string odd = "a\nb=\"c\" %d";
  request.environment = {"A", "B=x", "BASH_FUNC_f%%"};
  EXPECT_EQ(TakeVariables({"AB=1", "A=" + odd, "B=y", "BASH_FUNC_f%%=() { :; }"}, request), absl::OkStatus());
  EXPECT_THAT(request.environment, ElementsAre("A=" + odd, "B=x", "BASH_FUNC_f%%=() { :; }"));
  EXPECT_EQ(Environment(Plan(request).processes[0])["A"], odd);
  EXPECT_THAT(DryRunText(Plan(request)), HasSubstr(" env 'BASH_FUNC_f%%=() { :; }' "));
  request.environment = {"MISSING"};
  EXPECT_THAT(TakeVariables({"MISSING_TOO=1"}, request).message(),
              HasSubstr("--env MISSING: there is no such variable here; accepted: "));
  request.environment = {"TF_CONFIG"};
  EXPECT_EQ(TakeVariables({"TF_CONFIG={}"}, request), absl::OkStatus());
  EXPECT_THAT(ErrorOf(request), HasSubstr("set by muster run itself"));
}

TEST(ClusterPlan, DryRunIsForAShellAndMakesATokenOfItsOwn) {
  ClusterRequest request = Request();
  request.program = {"./my program", "it's", ""};
  request.environment = {"A=two words"};
  const std::string text = DryRunText(Plan(request));
  EXPECT_THAT(text,
              HasSubstr("\nexport MUSTER_JOB_TOKEN=\"${MUSTER_JOB_TOKEN:-$(openssl rand -hex 32)}\"\nset --\n# ps:0\n"
                        "A='two words' TF_CONFIG='{\"cluster\":{"));
  EXPECT_THAT(text, HasSubstr("# chief:0 (the chief)\n"));
  EXPECT_THAT(text, HasSubstr("}' './my program' 'it'\\''s' '' & set -- "));
  EXPECT_THAT(
      text, EndsWith("& set -- \"$@\" $!\ncode=0; for task in \"$@\"; do wait $task || code=$?; done\n(exit $code)\n"));
  EXPECT_THAT(text, Not(HasSubstr("run-1"))) << "with the run's id a task wouldn't name itself in its log";
  EXPECT_THAT(text, Not(HasSubstr("secret")));
}

TEST(ClusterPlan, ALayoutSaysWhichTasksThereAreAndWhatEachSees) {
  ClusterRequest request;
  request.program = {"./experiment"};
  request.layout = {{{kPsJob, 0}, "h1", 3}, {{kMasterJob, 0}, "h1", 0}, {{kWorkerJob, 0}, "h1", 1}};
  request.output_root = "/runs";
  const ClusterPlan plan = Plan(request);
  EXPECT_EQ(plan.chief, (TaskId{kMasterJob, 0}));
  ASSERT_EQ(plan.processes.size(), 3);
  EXPECT_EQ(plan.processes[1].task, (TaskId{kMasterJob, 0}));
  EXPECT_EQ(plan.processes[1].node, "h1");
  auto environment = Environment(plan.processes[0]);
  EXPECT_EQ(environment["CUDA_VISIBLE_DEVICES"], "3");
  EXPECT_EQ(environment["MUSTER_OUTPUT_ROOT"], "/runs");
  EXPECT_EQ(nlohmann::json::parse(environment["TF_CONFIG"])["cluster"]["master"][0], "127.0.0.1:2001");
  EXPECT_THAT(DryRunText(plan), HasSubstr("# master:0 (the chief)\nCUDA_VISIBLE_DEVICES=0 "));
  request.visible_devices = "5,7";
  EXPECT_EQ(Environment(Plan(request).processes[2])["CUDA_VISIBLE_DEVICES"], "7");
}

TEST(ClusterPlan, DryRunHasABlockForEachNodeWithOneToken) {
  ClusterRequest request;
  request.program = {"./experiment"};
  request.layout = {
      {{kPsJob, 0}, "h1", 0}, {{kPsJob, 1}, "h2", 0}, {{kMasterJob, 0}, "h1", 0}, {{kWorkerJob, 0}, "h2", 0}};
  const std::string text = DryRunText(Plan(request));
  EXPECT_THAT(text, StartsWith("# --- first, on h1: makes the job's token and copies it to the others\n"
                               "(umask 077 && openssl rand -hex 32 > ~/.muster-token-run-1)\n"
                               "scp -p ~/.muster-token-run-1 h2:\n\n"
                               "# --- on h1, in the program's folder\n"
                               "export MUSTER_JOB_TOKEN=\"$(cat ~/.muster-token-run-1)\"\nset --\n# ps:0\n"));
  const std::string second = text.substr(text.find("# --- on h2"));
  EXPECT_THAT(second, StartsWith("# --- on h2, in the program's folder\n"
                                 "export MUSTER_JOB_TOKEN=\"$(cat ~/.muster-token-run-1)\"\nset --\n# ps:1\n"));
  EXPECT_THAT(second, EndsWith("& set -- \"$@\" $!\ncode=0; for task in \"$@\"; do wait $task || code=$?; done\n"
                               "rm -f ~/.muster-token-run-1\n(exit $code)\n"));
  EXPECT_THAT(second, Not(HasSubstr("master:0")));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
}

TEST(ClusterPlan, WithoutALayoutDevicesAreLeftAsTheyAre) {
  const ClusterPlan plan = Plan(Request());
  EXPECT_FALSE(Environment(plan.processes[0]).contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_FALSE(Environment(plan.processes[0]).contains("MUSTER_OUTPUT_ROOT"));
}

}  // namespace
}  // namespace muster::cluster_plan_test
