// A keeper, and agents that die: each test forks a process that is the agent's first life. What the lives have to say
// comes through a pipe.
#include "muster/launch/keeper/keeper.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/backends/local/kernel_file.h"
#include "muster/launch/system/pid_fd.h"
#include "muster/launch/system/random_hex.h"

namespace muster::keeper_test {
namespace {

using ::testing::HasSubstr, ::testing::StartsWith;

// Turns a hang into a failed test.
constexpr int kHangMs = 60'000;

// For a shell to write a line when it is asked to end. It is waited for as a whole.
constexpr absl::Duration kEnoughForAShell = absl::Seconds(3);

using Life = std::function<void(Keeper& keeper)>;

class KeeperTest : public ::testing::Test {
 protected:
  KeeperTest() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    told_ = Socket(ends[0]);
    teller_ = Socket(ends[1]);
  }

  // Runs an agent's first life in a process of its own, and the next ones in those that the keeper forks.
  // `ending`: between asking tasks to end and killing them.
  pid_t RunLives(const Life& first, const Life& next, absl::Duration ending = absl::Milliseconds(50)) {
    const pid_t agent = fork();
    if (agent != 0) return agent;
    auto keeper = Keeper::Fork({.title = "run-guard test",
                                .agent_id = RandomHex(16),
                                .kept = {teller_.fd(), lock_.fd()},
                                .next_life =
                                    [next](std::unique_ptr<Keeper> its) {
                                      next(*its);
                                      return 0;
                                    },
                                .after_agent = absl::Milliseconds(20),
                                .ending = ending});
    if (keeper.ok()) first(**keeper);
    _exit(0);
  }
  void Tell(const std::string& text) const { EXPECT_GT(write(teller_.fd(), text.data(), text.size()), 0); }
  // Returns all that was told until the last process that could tell has ended.
  std::string AllThatWasTold() {
    teller_.Close();
    std::string all;
    pollfd more = {told_.fd(), POLLIN, 0};
    char piece[4096];
    while (poll(&more, 1, kHangMs) == 1) {
      const ssize_t got = read(told_.fd(), piece, sizeof piece);
      if (got <= 0) return all;
      all.append(piece, static_cast<size_t>(got));
    }
    ADD_FAILURE() << "a process goes on";
    return all;
  }

  static ChildSpec Shell(const std::string& script) {
    return {.program = "/bin/sh", .arguments = {"sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}};
  }
  static NewTask Named(const std::string& label) {
    return {.task = {kPsJob, 0}, .label = label, .about = "about " + label, .has_memory = true};
  }
  static NewTask Trainer(const std::string& label) {
    return {.task = {kWorkerJob, 0}, .label = label, .about = "about " + label};
  }
  static void AwaitOutput(const Child& child) {
    char piece[16];
    pollfd ready = {child.stdout_fd, POLLIN, 0};
    poll(&ready, 1, kHangMs);
    (void)!read(child.stdout_fd, piece, sizeof piece);
  }
  // Returns what is in the pipe until its end.
  static std::string Rest(int fd) {
    std::string rest;
    char piece[4096];
    pollfd more = {fd, POLLIN, 0};
    while (poll(&more, 1, kHangMs) == 1) {
      const ssize_t got = read(fd, piece, sizeof piece);
      if (got <= 0) break;
      rest.append(piece, static_cast<size_t>(got));
    }
    return rest;
  }
  [[noreturn]] static void Die() {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }

  const ScratchFolder scratch_;
  Socket lock_;
  Socket told_, teller_;
};

TEST_F(KeeperTest, TheNextLifeHasTheTasksAndWhatWasKept) {
  RunLives(
      [&](Keeper& keeper) {
        keeper.KeepValues({{"a", "1"}, {"b", "2"}});
        keeper.KeepValues({{"a", std::nullopt}, {"c", "3"}});
        keeper.StartTask(Named("one"), Shell("echo memory >&$MUSTER_ARENA_FD; echo said; exit 7")).value();
        Die();
      },
      [&](Keeper& keeper) {
        Tell(absl::StrCat("life ", keeper.life(), ";"));
        for (const auto& [name, thing] : keeper.kept()) Tell(absl::StrCat(name, "=", thing.value, ";"));
        const std::vector<AdoptedTask> tasks = keeper.Adopt();
        for (const AdoptedTask& task : tasks) {
          Tell(absl::StrCat(task.label, ":", task.about, ":", Rest(task.child.stdout_fd)));
          Tell(keeper.Await(task.label, task.child).ToString() + ";");
          keeper.Forget(task.label);
        }
        // Another life of the task finds its memory.
        const Child again = keeper.StartTask(Named("two"), Shell("cat /proc/self/fd/$MUSTER_ARENA_FD")).value();
        Tell(Rest(again.stdout_fd));
        Tell(keeper.Await("two", again).ToString());
      });
  EXPECT_EQ(AllThatWasTold(), "life 2;b=2;c=3;memory of ps:0=;one:about one:said\nexited with 7;memory\nexited with 0");
}

TEST_F(KeeperTest, WhatWasForgottenDoesNotComeAgain) {
  RunLives(
      [&](Keeper& keeper) {
        const Child child = keeper.StartTask(Named("one"), Shell("exit 0")).value();
        keeper.Await("one", child);
        keeper.Forget("one");
        const auto none = keeper.StartTask(Named("two"), {.program = "/there/is/none", .arguments = {"none"}});
        Tell(std::string(none.status().message()) + ";");
        Die();
      },
      [&](Keeper& keeper) { Tell(absl::StrCat(keeper.Adopt().size(), " tasks")); });
  EXPECT_THAT(AllThatWasTold(), ::testing::AllOf(HasSubstr("/there/is/none"), HasSubstr(";0 tasks")));
}

// Returns a script that goes on until it is killed, and writes a line each time that it is asked to end.
std::string AskedIn(const std::string& file) {
  return absl::StrCat("trap 'echo asked >> ", file, "' TERM; echo ready; while :; do sleep 1000 & wait; done");
}

// The limit holds for an agent that is stopped, too: its tasks are asked to end, then killed, and so is the agent. One
// that has asked them itself is only helped to kill them.
TEST_F(KeeperTest, WithoutAnAgentThatRunsTheTasksEndInTime) {
  for (const bool agent_asks : {false, true}) {
    const std::string file = scratch_.path() + (agent_asks ? "/agent" : "/keeper");
    const pid_t agent = RunLives(
        [&](Keeper& keeper) {
          const Child child = keeper.StartTask(Trainer("one"), Shell(AskedIn(file))).value();
          AwaitOutput(child);
          // A ps is killed without a word, as it would tell everybody that training has ended.
          AwaitOutput(keeper.StartTask(Named("ps"), Shell(AskedIn(file))).value());
          keeper.EndAt(BootClock().Now());
          if (agent_asks) kill(child.pid, SIGTERM);
          if (agent_asks) keeper.SetEnding();
          kill(getpid(), SIGSTOP);
          Tell("it goes on");
        },
        [&](Keeper&) { Tell("another life"); }, kEnoughForAShell);
    int status = 0;
    EXPECT_EQ(waitpid(agent, &status, 0), agent);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(ReadKernelFile(file).value_or(""), "asked\n");
  }
  EXPECT_EQ(AllThatWasTold(), "");
}

// It has left its group and its session, and has nothing in its environment by which it could be found.
TEST_F(KeeperTest, WhatATaskHasLeftBehindEndsWithTheKeeper) {
  RunLives(
      [&](Keeper& keeper) {
        const Child child =
            keeper.StartTask(Trainer("one"), Shell("env -i setsid sh -c 'echo $$; sleep 1000 & sleep 1000' & exit 0"))
                .value();
        AwaitOutput(child);
        keeper.Await("one", child);
        keeper.Forget("one");
        keeper.Goodbye();
        Tell("and " + Rest(child.stdout_fd) + "nobody");  // to the end: nobody has the pipe any more
      },
      [&](Keeper&) { Tell("another life"); });
  EXPECT_EQ(AllThatWasTold(), "and nobody");
}

// As a supervisor that `muster train` starts in a task.
TEST_F(KeeperTest, WhatIsToOutliveItsTaskOutlivesTheKeeper) {
  const std::string file = scratch_.path() + "/pid";
  RunLives(
      [&](Keeper& keeper) {
        const Child child =
            keeper
                .StartTask(Trainer("one"), Shell("env -i MUSTER_DETACHED=1 setsid sh -c 'echo $$ > " + file +
                                                 "; echo up; exec sleep 1000 >/dev/null 2>&1' & exit 0"))
                .value();
        AwaitOutput(child);
        keeper.Await("one", child);
        keeper.Forget("one");
        keeper.Goodbye();
        Rest(child.stdout_fd);
        Tell("over");
      },
      [&](Keeper&) { Tell("another life"); });
  EXPECT_EQ(AllThatWasTold(), "over");
  const pid_t pid = std::atoi(ReadKernelFile(file).value_or("0").c_str());
  ASSERT_GT(pid, 0);
  EXPECT_EQ(kill(pid, SIGKILL), 0);
}

// An agent that is stopped in the middle of a message doesn't keep the keeper from anything.
TEST_F(KeeperTest, HalfAMessageHoldsNothingUp) {
  const pid_t agent = RunLives(
      [&](Keeper& keeper) {
        keeper.StartTask(Named("one"), Shell("exec sleep 1000")).value();
        keeper.EndAt(BootClock().Now());
        EXPECT_EQ(write(keeper.fd(), "half", 4), 4);
        kill(getpid(), SIGSTOP);
      },
      [&](Keeper&) { Tell("another life"); });
  int status = 0;
  EXPECT_EQ(waitpid(agent, &status, 0), agent);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(AllThatWasTold(), "");
}

TEST_F(KeeperTest, OneThatHasAskedItsTasksToEndHasNoNextLife) {
  RunLives(
      [&](Keeper& keeper) {
        keeper.StartTask(Named("one"), Shell("exec sleep 1000")).value();
        keeper.SetEnding();
        Die();
      },
      [&](Keeper&) { Tell("another life"); });
  EXPECT_EQ(AllThatWasTold(), "");
}

TEST_F(KeeperTest, AnAgentThatDiesAgainAndAgainIsNotStartedForEver) {
  RunLives([&](Keeper&) { Die(); },
           [&](Keeper& keeper) {
             Tell(absl::StrCat(keeper.life(), ";"));
             Die();
           });
  EXPECT_EQ(AllThatWasTold(), "2;3;4;5;");
}

// By that lock, whoever comes next sees that there is still something to be ended.
TEST_F(KeeperTest, KeepsWhatItWasGivenUntilItEnds) {
  const auto open_it = [&] { return open(scratch_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); };
  lock_ = Socket(open_it());
  const Socket other(open_it());
  ASSERT_EQ(flock(lock_.fd(), LOCK_EX | LOCK_NB), 0);
  auto keeper =
      Keeper::Fork({.title = "run-guard test", .agent_id = RandomHex(16), .kept = {lock_.fd()}, .next_life = nullptr});
  ASSERT_EQ(keeper.status(), absl::OkStatus());
  EXPECT_THAT(ReadKernelFile(absl::StrCat("/proc/", (*keeper)->pid(), "/cmdline")).value_or(""),
              StartsWith("run-guard test"));
  lock_.Close();
  EXPECT_NE(flock(other.fd(), LOCK_EX | LOCK_NB), 0);
  (*keeper)->Goodbye();
  EXPECT_EQ(flock(other.fd(), LOCK_EX | LOCK_NB), 0);
}

TEST_F(KeeperTest, WithoutItsKeeperAnAgentsTasksAreKilled) {
  auto keeper = Keeper::Fork({.title = "run-guard test", .agent_id = RandomHex(16), .kept = {}, .next_life = nullptr});
  ASSERT_EQ(keeper.status(), absl::OkStatus());
  const Child child = (*keeper)->StartTask(Named("one"), Shell("exec sleep 1000")).value();
  ASSERT_EQ(kill((*keeper)->pid(), SIGKILL), 0);
  pollfd gone[] = {{child.pid_fd, POLLIN, 0}, {(*keeper)->fd(), POLLIN, 0}};
  for (pollfd& one : gone) EXPECT_EQ(poll(&one, 1, kHangMs), 1);
  EXPECT_EQ((*keeper)->Await("one", child), ExitStatus{.signal = SIGKILL});
  EXPECT_TRUE((*keeper)->gone());
  EXPECT_FALSE((*keeper)->StartTask(Named("two"), Shell("exit 0")).ok());
}

}  // namespace
}  // namespace muster::keeper_test
