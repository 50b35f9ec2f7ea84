// Experiments whose supervisor is on another machine that shares MUSTER_HOME: what commands show, and how they end it.
// The other machine is a process with another boot, host name, process numbers and index.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/experiments.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster::experiment_elsewhere_test {
namespace {

using ::testing::AllOf, ::testing::ContainsRegex, ::testing::HasSubstr;

constexpr char kOtherMachine[] = R"(mount --bind "$0" /proc/sys/kernel/random/boot_id && hostname other && exec "$@")";
// Sees MUSTER_HOME through a layer, where what is written below it is there, but no inotify tells of it, as on a
// network file system.
constexpr char kByNetwork[] = R"(mount -t overlay -o "lowerdir=$0:$MUSTER_HOME" none "$MUSTER_HOME" && exec "$@")";

class ExperimentElsewhere : public ExperimentsTest {
 protected:
  ExperimentElsewhere() { environment_ = {"MUSTER_INDEX=" + Aside("index")}; }

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << NoTestBecause("another machine is simulated by namespaces, which need root");
    std::ofstream(Aside("boot")) << "0b0b0b0b-aaaa-bbbb-cccc-0123456789ab\n";
  }
  // `before`: words that run the command.
  std::unique_ptr<Process> StartThere(const std::vector<std::string>& arguments,
                                      const std::vector<std::string>& before = {}) {
    std::vector<std::string> words = {"/usr/bin/env", "unshare",      "--mount", "--uts", "--pid",       "--fork",
                                      "--kill-child", "--mount-proc", "sh",      "-c",    kOtherMachine, Aside("boot")};
    for (const std::string& word : Joined(before, Command(arguments))) words.push_back(word);
    ProcessOptions options = Options();
    for (auto& [name, value] : options.environment)
      if (name == "MUSTER_INDEX") value = Aside("index_there");
    return std::make_unique<Process>(words, options);
  }
  Said There(const std::vector<std::string>& arguments) {
    const auto process = StartThere(arguments);
    const int code = process->Wait();
    return {code, process->out, process->err};
  }
};

TEST_F(ExperimentElsewhere, IsShownFollowedAndKilled) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: echo begun; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun");
  const Said status = There({"status", "1"});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_THAT(status.out, ContainsRegex("experiment 1 of project toy: RUNNING, on [^ ]+, as of .* ago"));
  EXPECT_EQ(status.err, "") << "nobody there takes the supervisor for lost";
  const auto logs = StartThere({"logs", "1", "-f"});
  logs->WaitForOut("begun");
  const Said killed = There({"kill", "1"});
  EXPECT_EQ(killed.exit_code, 0) << killed.err;
  EXPECT_EQ(killed.out, "experiment 1: KILLED\n");
  EXPECT_THAT(killed.err, HasSubstr("asked the supervisor of experiment 1 on "));
  EXPECT_EQ(logs->Wait(), 0) << logs->err;
  train->Wait();
  EXPECT_EQ(StateOf("1"), "KILLED");
  EXPECT_FALSE(std::filesystem::exists(home() + "/open/1"));
  EXPECT_FALSE(std::filesystem::exists(home() + "/index.db")) << "each has an index of its own";
}

TEST_F(ExperimentElsewhere, FollowsWhereNothingTellsOfNewLines) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment(absl::StrCat("run: 'echo begun; read line < ", gate.path(), "; echo first; read line < ", gate.path(),
                               "; echo second'"));
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun");
  std::filesystem::create_directory(Aside("layer"));
  const auto logs = StartThere({"logs", "1", "-f"}, {"sh", "-c", kByNetwork, Aside("layer")});
  logs->WaitForOut("begun");
  gate.LetThrough();
  logs->WaitForOut("first");
  gate.LetThrough();
  EXPECT_EQ(logs->Wait(), 0) << logs->err;
  EXPECT_THAT(logs->out, HasSubstr("second"));
  EXPECT_EQ(train->Wait(), 0) << train->err;
}

TEST_F(ExperimentElsewhere, EndsAndBeginsAgainForBoth) {
  WriteExperiment("run: echo ran");
  EXPECT_EQ(StartMuster({"train"})->Wait(), 0);
  EXPECT_THAT(There({"ls"}).out, AllOf(HasSubstr("FINISHED"), HasSubstr("toy")));
  const Said again = There({"train", "--experiment", "1"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("ran"));
  EXPECT_EQ(There({"train"}).exit_code, 0);
  EXPECT_EQ(StateOf("2"), "FINISHED") << "the next number, though it was started there";
  EXPECT_EQ(Json({"status", "1"})["attempt"], 2);
}

TEST_F(ExperimentElsewhere, ASilentSupervisorIsNamedAndNotJudged) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: echo begun; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun");
  const auto supervisor = Json({"status", "1"})["supervisor"].get<pid_t>();
  ASSERT_EQ(kill(supervisor, SIGSTOP), 0);
  const std::string state = home() + "/experiments/1/state.json";
  std::filesystem::last_write_time(state, std::filesystem::last_write_time(state) - std::chrono::hours(3));
  EXPECT_THAT(There({"status", "1"}).out, ContainsRegex("RUNNING, on [^ ]+, as of 3 h ago"));
  const Said killed = There({"kill", "1"});
  EXPECT_EQ(killed.exit_code, 1) << killed.out;
  EXPECT_THAT(killed.err, HasSubstr("nothing was heard from its supervisor on "));
  EXPECT_TRUE(std::filesystem::is_empty(home() + "/experiments/1/requests")) << "it was taken back";
  ASSERT_EQ(kill(supervisor, SIGCONT), 0);
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 0);
}

}  // namespace
}  // namespace muster::experiment_elsewhere_test
