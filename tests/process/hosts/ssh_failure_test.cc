// What happens to `muster run` over hosts when something breaks in the middle of training: connections, the network,
// processes, a host, the command itself.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/types.h>

#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/hosts_run.h"
#include "tests/process/testing/killed_run.h"

namespace muster::ssh_failure_test {
namespace {

using ::testing::ContainsRegex, ::testing::Each, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

// Between the grace of these runs, after which tasks have 3 s to end, and the 30 s that a run has by default.
constexpr absl::Duration kNotTheDefaultGrace = absl::Seconds(22);

constexpr int64_t kWidth = 40000;

class SshFailure : public HostsRunTest {
 protected:
  // Trains with two ps that hold the model, and one worker, whose updates each add one to every element.
  std::unique_ptr<Process> TrainCounting() {
    return Run({"--ps", "2", "--workers", "1", "--muster-ps", "--model_dir", Shared("model"), "--max-restarts", "100"},
               Joined(ToyThatCounts(), {"--steps=1000000000", "--log_steps=10", "--width=" + std::to_string(kWidth)}));
  }
};

// Returns the processes that a process without threads has started itself.
std::vector<pid_t> ChildrenOf(pid_t pid) {
  const std::string number = std::to_string(pid);
  std::ifstream list("/proc/" + number + "/task/" + number + "/children");
  return {std::istream_iterator<pid_t>(list), {}};
}

// The disk of the agents' folder is full on h1: nothing starts, and it is said where there must be room.
TEST_F(SshFailure, AFullDiskOfTheAgentsFolderIsNamedBeforeAnythingStarts) {
  AllowAgentFolders();
  Process fill(hosts().On("h1", {"sh", "-c",
                                 "mkdir /tmp/muster-0 && mount -t tmpfs -o size=64k,mode=700 none /tmp/muster-0 && "
                                 "! head -c 1M /dev/zero >/tmp/muster-0/fill"}));
  EXPECT_EQ(fill.Wait(), 0) << fill.err;
  const auto run = Run({"--ps", "0", "--workers", "2"}, {"sh", "-c", ": >started"});
  EXPECT_EQ(run->Wait(), 2) << run->err;
  EXPECT_THAT(run->err, ContainsRegex("h1: [^\n]*cannot write /tmp/muster-0/agents/[^\n]*No space left on device; make "
                                      "room on its disk"));
  EXPECT_THAT(EntriesOf(hosts().shared()), IsEmpty());
}

TEST_F(SshFailure, ABrokenConnectionCostsNothing) {
  const auto run = Train();
  for (int i = 0; i < 3; ++i) {
    for (const std::string& host : hosts().names()) hosts().CutSsh(host);
    AwaitSteps(*run);
  }
  EndTraining(*run);
}

TEST_F(SshFailure, AHostThatIsSilentForLessThanTheGraceGoesOn) {
  const auto run = Train();
  hosts().Cut("h2");
  run->WaitForErr("h2 hasn't been heard");
  hosts().Heal("h2");
  run->WaitForErr("h2 is heard again");
  // Its worker may find its way back to the ps later than its agent to the supervisor.
  AwaitSteps(*run, "1");
  EndTraining(*run);
}

// As where a network forgets a connection: neither end hears of it.
TEST_F(SshFailure, AConnectionOverWhichNothingComesIsMadeAnew) {
  const auto run = Train();
  std::vector<pid_t> stopped;
  for (const pid_t child : ChildrenOf(run->pid()))
    if (kill(child, SIGSTOP) == 0) stopped.push_back(child);
  EXPECT_EQ(stopped.size(), hosts().names().size());
  run->WaitForErr("h1 hasn't been heard");
  run->WaitForErr("h1 is heard again");
  run->WaitForErr("h2 is heard again");
  AwaitSteps(*run);
  EndTraining(*run);
}

TEST_F(SshFailure, HostsWhoseClocksAreFiveMinutesApartTrainTogether) {
  // What ssh starts on h2 lives five minutes later: the agent, and so its tasks. (Only the time of day differs between
  // hosts; a timer of the kernel, which keeps its own monotonic time, would come five minutes late.)
  Process set(hosts().On("h2", {"sh", "-c",
                                "mkdir -p /run/home/.ssh && for lib in /usr/lib/*/faketime/libfaketimeMT.so.1; do "
                                "printf 'LD_PRELOAD=%s\nFAKETIME=+5m\nFAKETIME_DONT_FAKE_MONOTONIC=1\n' $lib "
                                ">/run/home/.ssh/environment; done"}));
  EXPECT_EQ(set.Wait(), 0) << set.err;
  std::map<std::string, long> clocks;
  for (const std::string& host : hosts().names()) {
    Process date(hosts().On("h0", {"ssh", "-F", hosts().ssh_config(), host, "date +%s"}));
    EXPECT_EQ(date.Wait(), 0) << date.err;
    clocks[host] = std::stol(date.out);
  }
  ASSERT_GT(clocks["h2"], clocks["h1"] + 200);
  const auto run = Train();
  Process of_worker(hosts().On("h2", {"cat", "/proc/" + PidOf(*run, "worker:1") + "/environ"}));
  EXPECT_EQ(of_worker.Wait(), 0) << of_worker.err;
  EXPECT_THAT(of_worker.out, HasSubstr("FAKETIME=+5m"));
  AwaitSteps(*run);
  for (const char* wrong : {"hasn't been heard", "is left out", "dialled again"})
    EXPECT_THAT(run->err, Not(HasSubstr(wrong)));
  EndTraining(*run);
}

TEST_F(SshFailure, AHostThatCrashesIsLostAndItsReturnIsWaitedFor) {
  const auto run = Train();
  hosts().Crash("h1");
  run->WaitForErr("worker:0 can't be started now: h1 can't be reached");
  run->Signal(SIGINT);
  EXPECT_NE(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, HasSubstr("h1 is lost"));
  EXPECT_THAT(run->err, HasSubstr("it is tried again for 10m, without a restart counted"));
  EXPECT_THAT(run->err, Not(HasSubstr("restart 2 of")));
  EXPECT_THAT(run->err, Not(HasSubstr("h2 is lost")));
}

TEST_F(SshFailure, TrainingGoesOnWithoutAHostThatHadAWorkerOnly) {
  const auto run = Train();
  hosts().Crash("h2");
  run->WaitForErr("h2 is lost");
  AwaitSteps(*run);
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, Not(HasSubstr("h1 is lost")));
}

TEST_F(SshFailure, AllTasksEndWithinTheGraceOfTheirSupervisorsDeath) {
  AllowAgentFolders();
  const auto run = Train();
  run->Signal(SIGKILL);
  EXPECT_EQ(run->Reap(), 128 + SIGKILL);
  const absl::Time death = absl::Now();
  for (const std::string& host : hosts().names()) EXPECT_THAT(hosts().ProcessesOf(host), Not(IsEmpty())) << host;
  for (const std::string& host : hosts().names()) hosts().AwaitNothingOn(host);
  EXPECT_LT(absl::Now() - death, kNotTheDefaultGrace);
}

// Hosts that hear each other, but not the command: their tasks end, and the command ends too.
TEST_F(SshFailure, AllTasksEndWhenTheirSupervisorIsCutOff) {
  AllowAgentFolders();
  const auto run = Train();
  hosts().Cut("h0");
  for (const std::string& host : hosts().names()) run->WaitForErr(host + " hasn't been heard");
  run->Signal(SIGINT);
  run->WaitForErr(
      "waiting for h1, which isn't heard and counts as lost 15s after it was heard last; until then ps:0, "
      "worker:0 may go on there. Another interrupt kills the other tasks and waits no less for it");
  run->WaitForErr("waiting for h2, which isn't heard");
  for (const std::string& host : hosts().names()) hosts().AwaitNothingOn(host);
  for (const std::string& host : hosts().names()) run->WaitForErr(host + " is lost");
  EXPECT_NE(run->Wait(), 0) << run->err;
}

// With one worker there is no update while the last checkpoint is made: every element is exact.
TEST_F(SshFailure, AKilledPsOfAHostFindsItsMemoryAgain) {
  const auto run = TrainCounting();
  for (int i = 0; i < 6; ++i) {
    const std::string number = std::to_string(i % 2), host = i % 2 == 0 ? "h1" : "h2", task = "ps:" + number;
    AwaitSteps(*run);
    const size_t before = run->err.size();
    Process kill(hosts().On(host, {"kill", "-KILL", PidOf(*run, task)}));
    EXPECT_EQ(kill.Wait(), 0) << kill.err;
    const std::string how = " was killed by signal 9 (killed), from outside";
    run->WaitForErr("[muster] " + task + " is process ", run->WaitForErr(task + how, before));
    run->WaitForErr("\n", run->err.rfind(" is process "));
  }
  AwaitSteps(*run);
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, HasSubstr("found the model of an earlier life"));
  const FinalValues final = ReadFinal(Shared("model"), kWidth);
  EXPECT_GT(final.global_step, 60);
  EXPECT_THAT(final.w, Each(1.0f + static_cast<float>(final.global_step)));
  EXPECT_THAT(final.b, Each(1.0f + static_cast<float>(final.global_step)));
}

// The guard forks the next life of the agent, which has the tasks' processes, their pipes and a ps's memory.
TEST_F(SshFailure, TheTasksOfAKilledAgentGoOn) {
  const auto run = TrainCounting();
  AwaitSteps(*run);
  std::map<std::string, std::string> pids;
  for (const std::string task : {"ps:0", "ps:1", "worker:0"}) pids[task] = PidOf(*run, task);
  for (int i = 0; i < 4; ++i) {
    const size_t before = run->err.size();
    const std::string host = i % 2 == 0 ? "h1" : "h2";
    for (const SimulatedHosts::Running& running : hosts().ProcessesOf(host))
      if (absl::StrContains(running.words, " --serve ")) kill(running.pid, SIGKILL);
    run->WaitForErr("the agent on " + host + " was killed; another goes on with its ", before);
    AwaitSteps(*run);
  }
  for (const auto& [task, pid] : pids) EXPECT_EQ(PidOf(*run, task), pid) << task;
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, Not(HasSubstr("was killed by signal")));
  const FinalValues final = ReadFinal(Shared("model"), kWidth);
  EXPECT_THAT(final.w, Each(1.0f + static_cast<float>(final.global_step)));
  EXPECT_THAT(final.b, Each(1.0f + static_cast<float>(final.global_step)));
}

TEST_F(SshFailure, TheTasksOfAKilledGuardAreStartedAgain) {
  const auto run = Train();
  for (int i = 0; i < 2; ++i) {
    const size_t before = run->err.size();
    for (const SimulatedHosts::Running& running : hosts().ProcessesOf("h2"))
      if (absl::StartsWith(running.words, "run-guard ")) kill(running.pid, SIGKILL);
    const size_t died = run->WaitForErr("the agent on h2 has died, and its tasks with it", before);
    run->WaitForErr("worker:1 is process ", died);
    AwaitSteps(*run);
  }
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait(), 0) << run->err;
}

}  // namespace
}  // namespace muster::ssh_failure_test
