// What happens to the tasks of a host that is lost: they go to other hosts, and what was acknowledged counts there
// once.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/engines.h"
#include "tests/process/testing/hosts_run.h"
#include "tests/process/testing/killed_run.h"

namespace muster::moved_tasks_test {
namespace {

using nlohmann::json;
using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::Each, ::testing::Ge,
    ::testing::HasSubstr, ::testing::Le, ::testing::Not, ::testing::StartsWith, ::testing::Value;

constexpr int64_t kWidth = 40000;

// Every update that counts is in every element, once. `more`: updates that nobody acknowledged may be there, too.
void ExpectExact(const std::string& folder, int more = 0) {
  const FinalValues final = ReadFinal(folder, kWidth);
  EXPECT_GT(final.global_step, 0);
  const float least = 1.0f + static_cast<float>(final.global_step);
  const auto as_counted = AllOf(Ge(least), Le(least + static_cast<float>(more)));
  EXPECT_THAT(final.w, Each(as_counted));
  EXPECT_THAT(final.b, Each(as_counted));
}

// Three hosts: h1 with the chief, h2 that is lost, h3 to go to.
class MovedTasks : public HostsRunTest {
 protected:
  MovedTasks() : HostsRunTest(3) {}

  std::unique_ptr<Process> RunOnThree(const std::vector<std::string>& flags, const std::vector<std::string>& program) {
    return Run(Joined({"--hosts", "h1,h2,h3", "--ssh-config", hosts().ssh_config()}, flags), program);
  }
  // Trains with ps 0 and the chief on h1, ps 1 and a worker on h2. Each update adds one to every element.
  std::unique_ptr<Process> TrainCounting(const std::vector<std::string>& flags = {}) {
    auto run = RunOnThree(Joined({"--ps", "2", "--workers", "2", "--muster-ps", "--model_dir", Shared("model")}, flags),
                          Joined(ToyThatCounts(), {"--steps=1000000000", "--log_steps=10", "--save_steps=100",
                                                   "--width=" + std::to_string(kWidth)}));
    for (const std::string worker : {"0", "1"}) run->WaitForErrLine("[worker:" + worker + "] ", "loss = ", 0);
    return run;
  }
  // Breaks the way from h2 to the supervisor alone ("add"), or mends it ("del").
  void BreakTheWayToH0(const std::string& verb) {
    Process route(hosts().On("h2", {"ip", "route", verb, "blackhole", SimulatedHosts::AddressOf("h0") + "/32"}));
    EXPECT_EQ(route.Wait(), 0) << route.err;
  }
  bool Runs(const std::string& host, const std::string& word) {
    for (const SimulatedHosts::Running& running : hosts().ProcessesOf(host))
      if (absl::StrContains(running.words, word)) return true;
    return false;
  }
};

TEST_F(MovedTasks, GoToAnotherHostWhenTheirsHasCrashed) {
  const auto run = TrainCounting();
  hosts().Crash("h2");
  run->WaitForErr("worker:1 goes to h3");
  run->WaitForErr("ps:1 goes to h3");
  run->WaitForErr("ps:1 is process ", run->err.find("ps:1 goes to h3"));
  AwaitSteps(*run);
  run->WaitForErrLine("[worker:1] ", "loss = ", run->err.size());
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait(), 0) << run->err;
  ExpectExact(Shared("model"));
}

// The chief's host can't write down where they went. It says so, and the chief finds the new ps once there is room.
TEST_F(MovedTasks, AreFoundOnceAFullDiskHasRoomForTheirAddresses) {
  const auto on_h1 = [&](const std::string& script) {
    Process process(hosts().On("h1", {"sh", "-c", script}));
    EXPECT_EQ(process.Wait(), 0) << process.err;
  };
  on_h1("mkdir /tmp/muster-0 && mount -t tmpfs -o size=64k,mode=700 none /tmp/muster-0");
  const auto run = TrainCounting();
  // Until not even a file of one byte has room.
  on_h1("cd /tmp/muster-0 && ! head -c 1M /dev/zero >fill && n=0 && while echo >fill$n; do n=$((n + 1)); done");
  hosts().Crash("h2");
  run->WaitForErr("ps:1 goes to h3");
  run->WaitForErr("h1: tasks have old addresses until this works: cannot write /tmp/muster-0/agents/");
  run->WaitForErr("No space left on device; make room on its disk");
  on_h1("rm /tmp/muster-0/fill*");
  run->WaitForErr("h1: tasks have the present addresses again");
  AwaitSteps(*run);
  run->WaitForErrLine("[worker:1] ", "loss = ", run->err.size());
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait(), 0) << run->err;
  ExpectExact(Shared("model"));
}

// A worker is replaced long before its host counts as lost. Its old process is of no use any more, and is killed once
// the host is heard again; the ps there has lost nothing.
TEST_F(MovedTasks, AWorkerIsReplacedWhileItsHostIsSilent) {
  const auto run = TrainCounting({"--grace", "60"});
  hosts().Cut("h2");
  run->WaitForErr("worker:1 goes to h3");
  run->WaitForErr("worker:1 is process ", run->err.find("worker:1 goes to h3"));
  EXPECT_TRUE(Runs("h2", "toy_worker"));
  hosts().Heal("h2");
  run->WaitForErr("h2 is heard again");
  AwaitSteps(*run);
  run->WaitForErrLine("[worker:1] ", "loss = ", run->err.size());
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, Not(HasSubstr("ps:1 goes to")));
  // The old process may have been killed between an update and its count.
  ExpectExact(Shared("model"), 1);
}

// Only the way from the supervisor to the host is broken: the ps hear the old worker, and take the new one all the
// same.
TEST_F(MovedTasks, AWorkerThatThePsStillHearIsReplaced) {
  const auto run = TrainCounting({"--grace", "60"});
  BreakTheWayToH0("add");
  run->WaitForErr("worker:1 goes to h3");
  run->WaitForErrLine("[worker:1] ", "loss = ", run->err.find("worker:1 goes to h3"));
  BreakTheWayToH0("del");
  run->WaitForErr("h2 is heard again");
  run->WaitForErrLine("[worker:1] ", "loss = ", run->err.size());
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, Not(HasSubstr("first failure")));
  ExpectExact(Shared("model"), 1);
}

// The host's agent ends its ps, whose cluster hears it to the last, as do the others. Training goes on with the next.
TEST_F(MovedTasks, APsThatOnlyTheSupervisorHasLostDoesNotEndTraining) {
  AllowAgentFolders();
  const auto run = TrainCounting();
  BreakTheWayToH0("add");
  run->WaitForErr("ps:1 goes to h3");
  AwaitSteps(*run);
  BreakTheWayToH0("del");
  run->WaitForErrLine("[worker:1] ", "loss = ", run->err.size());
  EXPECT_THAT(run->err, AllOf(Not(HasSubstr("training has ended")), Not(HasSubstr("Loss for final step"))));
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait(), 0) << run->err;
  ExpectExact(Shared("model"));
}

TEST_F(MovedTasks, ProgramsThatKnowOnlyTheirEnvironmentAreAllStartedAgain) {
  const auto run =
      RunOnThree({"--ps", "0", "--workers", "2", "--restart-all"},
                 {"sh", "-c", "echo told $TF_CONFIG >&2; while [ ! -e " + Shared("go") + " ]; do sleep 0.1; done"});
  for (const std::string worker : {"worker:0", "worker:1"}) run->WaitForErrLine("[" + worker + "] ", "told", 0);
  hosts().Crash("h2");
  run->WaitForErr("worker:1 goes to h3");
  run->WaitForErr("ending all tasks, to start them again");
  const std::string address = SimulatedHosts::AddressOf("h3") + ":";
  for (const std::string worker : {"worker:0", "worker:1"}) run->WaitForErrLine("[" + worker + "] told", address, 0);
  std::ofstream(Shared("go")) << "\n";
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, Not(HasSubstr("first failure")));
}

class MovedExperiment : public OnEveryEngine {};
INSTANTIATE_TEST_SUITE_P(, MovedExperiment, ::testing::Values("ssh"), EngineName);

// A host with a ps and a worker that applies its own updates there is unplugged: both go on without anybody, until the
// ps notices, long before the grace is over, and are replaced. What they have done since the last checkpoint is lost
// and said; all else counts once.
TEST_P(MovedExperiment, AnUnpluggedHostWithAPsAndADirectWorkerIsReplaced) {
  RunOn("h2,h1", "placement: {master: h1}\n", "20s");
  Write(
      "muster.yml",
      absl::StrCat("project: toy\ntrain:\n  framework: muster\n  muster: {distributed: {ps: 1, worker: 2}}\n  output: ",
                   Aside("out"), "\n  run: >-\n    ", absl::StrJoin(ToyThatCounts(), " "),
                   " --apply=auto --steps=1000000000 --log_steps=10 --save_steps=100 --width=", kWidth,
                   " --model_dir=$OUTPUT_DIR --note_steps=", Aside(""), "\n"));
  const auto train = StartMuster({"train"});
  AwaitLines(*train, "1.worker.1", 20);
  EXPECT_THAT(train->out, HasSubstr("worker:0 applies its updates itself"));
  for (const std::string task : {"ps.1", "worker.1"}) EXPECT_EQ(TasksOf("1")["1." + task]["host"], "h2") << task;
  hosts().Cut("h2");
  const auto cut = std::filesystem::file_time_type::clock::now();
  train->WaitForOut("steps are lost");
  EXPECT_LT(std::filesystem::last_write_time(Aside("worker.0.1")) - cut, std::chrono::seconds(13))
      << "steps were acknowledged to the old worker that its successor doesn't know of";
  const size_t before = LinesOf(train->out, "1.worker.1").size();
  AwaitLines(*train, "1.worker.1", before + 20);
  hosts().Heal("h2");
  const std::string status = Out({"status", "1"});
  for (const std::string task : {"ps.1", "worker.1"}) {
    EXPECT_EQ(TasksOf("1")["1." + task]["host"], "h1") << task;
    EXPECT_THAT(status, ContainsRegex("\n1." + task + " [^\n]*was restarted: h2 was lost; it runs on h1 now\n"));
  }
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 0);
  EXPECT_EQ(train->Wait(), 130);
  ExpectExact(Aside("out") + "/1");
}

// Only muster's own programs learn of a move; those of other frameworks are told the new address when they start.
TEST_P(MovedExperiment, ProgramsOfOtherFrameworksAreAllStartedAgain) {
  const std::string go = Aside("go");
  Write("muster.yml",
        absl::StrCat("project: toy\ntrain:\n  framework: tensorflow\n  tensorflow: {distributed: {worker: 2}}\n"
                     "  output: ",
                     Aside("out"), "\n  run: echo told $TF_CONFIG; while [ ! -e ", go, " ]; do sleep 0.1; done\n"));
  const auto train = StartMuster({"train", "--no-venv"});
  const auto await_told = [&](const std::string& host) {
    const std::string address = "\"worker\":[\"" + SimulatedHosts::AddressOf(host) + ":";
    for (const std::string task : {"1.master", "1.worker.1"})
      while (!HasFailure() &&
             !Value(LinesOf(train->out, task), Contains(AllOf(StartsWith("told "), HasSubstr(address)))))
        train->ReadSomeOut();
  };
  await_told("h2");
  hosts().Cut("h2");
  train->WaitForOut("ending all tasks, to start them again");
  hosts().Heal("h2");
  await_told("h1");
  const json tasks = TasksOf("1");
  EXPECT_EQ(tasks["1.worker.1"]["host"], "h1");
  EXPECT_EQ(tasks["1.master"]["restarts"], 0) << "it is the other's host that was lost";
  EXPECT_THAT(Out({"status", "1"}),
              ContainsRegex("\n1.worker.1 [^\n]*was restarted: h2 was lost; it runs on h1 now\n"));
  std::ofstream(go) << "\n";
  EXPECT_EQ(train->Wait(), 0) << train->err;
}

}  // namespace
}  // namespace muster::moved_tasks_test
