// `muster agent` as ssh runs it: a program whose stdin and stdout are a stream to the job's agent, which it starts.
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/launch/agent/agent_listener.h"
#include "muster/launch/agent/rendezvous.h"
#include "muster/launch/backends/local/kernel_file.h"
#include "muster/launch/system/piped_program.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/testing/agent_client.h"
#include "muster/launch/testing/piped_program_text.h"
#include "tests/process/testing/process.h"

namespace muster::agent_command_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::MatchesRegex,
    ::testing::Not, ::testing::SizeIs;

const std::string kMuster = BinFolder() + "/muster";
const TaskId kTask{kWorkerJob, 0};

const std::string kZero(1, '\0');

// Turns a hang into a failed test.
constexpr absl::Duration kHang = absl::Minutes(2);

class AgentCommandTest : public ::testing::Test {
 protected:
  // A connection as ssh makes one, with a supervisor at this end.
  struct Contact {
    Contact(FdLoop& loop, const std::string& job, uint64_t number)
        : job(job),
          program(PipedProgram::Start({kMuster, "agent", "--attach", job},
                                      {kUsualPath, "SSH_CONNECTION=10.0.0.1 50000 10.0.0.2 22", "SSH_TTY=/dev/none",
                                       "MUSTER_AGENT_ID=of-another", "KEPT=yes"})
                      .value()),
          client(loop, job, number) {
      client.Dial(program.stdout_fd(), program.stdin_fd());
    }
    ~Contact() { client.HangUp(); }
    // Goes on over another connection.
    void DialAgain() {
      program = PipedProgram::Start({kMuster, "agent", "--attach", job}, {kUsualPath}).value();
      client.Dial(program.stdout_fd(), program.stdin_fd());
    }

    const std::string job;
    PipedProgram program;
    AgentClient client;
  };

  AgentCommandTest() { signal(SIGPIPE, SIG_IGN); }

  std::unique_ptr<Contact> Attach(uint64_t number = 1) { return std::make_unique<Contact>(loop_, job_, number); }
  template <typename Done>
  void RunUntil(Contact& contact, Done done) {
    const absl::Time give_up = RealClock().Now() + kHang;
    while (!done() && RealClock().Now() < give_up) {
      loop_.RunOnce(RealClock().Now() + absl::Milliseconds(10));
      contact.client.OnTime();
    }
    ASSERT_TRUE(done()) << contact.client.why_ended;
  }
  CommandId Shell(Contact& contact, const std::string& script) {
    return contact.client.link.Launch({.task = kTask, .arguments = {"sh", "-c", script}}).value();
  }
  // Returns what the script prints.
  std::string OutputOf(Contact& contact, const std::string& script) {
    const CommandId launch = Shell(contact, script);
    RunUntil(contact, [&] { return contact.client.exits.contains(launch); });
    return contact.client.out[launch];
  }
  // Returns the first line of a task that goes on.
  std::string FirstLine(Contact& contact, const CommandId& launch) {
    RunUntil(contact, [&] { return contact.client.out[launch].ends_with('\n'); });
    return contact.client.out[launch];
  }
  // Ends the agent; then its end of the stream is closed, too.
  void Stop(Contact& contact) {
    contact.client.link.Stop().value();
    RunUntil(contact, [&] { return contact.client.stopped.has_value() && !contact.client.connected(); });
    EXPECT_EQ(contact.program.Wait(), ExitStatus{});
  }
  // A process that has ended, but that nobody has waited for yet, has no command line.
  static bool Runs(pid_t pid) { return !ReadKernelFile(absl::StrCat("/proc/", pid, "/cmdline")).value_or("").empty(); }
  // Returns the process of the job's agent, whichever life of it that is.
  pid_t AgentPid() const {
    const std::string words = absl::StrCat("agent", kZero, "--serve", kZero, job_, kZero);
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      int pid = 0;
      if (absl::SimpleAtoi(entry.path().filename().string(), &pid) &&
          absl::StrContains(ReadKernelFile(entry.path().string() + "/cmdline").value_or(""), words))
        return pid;
    }
    ADD_FAILURE() << "no agent of " << job_;
    return 0;
  }
  std::string Folder() const { return absl::StrCat("/tmp/muster-", geteuid(), "/agents/", job_); }
  static pid_t PidIn(const std::string& line) {
    int pid = 0;
    EXPECT_TRUE(absl::SimpleAtoi(line, &pid)) << line;
    return pid;
  }

  const std::string job_ = "test-" + RandomHex(8);
  FdLoop loop_{RealClock()};
};

TEST_F(AgentCommandTest, StartsAnAgentOfWhichNothingIsLeft) {
  const auto contact = Attach();
  EXPECT_EQ(OutputOf(*contact, "echo hello"), "hello\n");
  struct stat info {};
  ASSERT_EQ(stat((Folder() + "/log").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  Stop(*contact);
  EXPECT_NE(stat(Folder().c_str(), &info), 0);
}

TEST_F(AgentCommandTest, TasksGetTheUsersEnvironmentWithoutTheLogins) {
  const mode_t before = umask(027);
  const auto contact = Attach();
  umask(before);
  const std::string all = OutputOf(*contact, "env; umask; pwd");
  EXPECT_THAT(all, AllOf(HasSubstr("KEPT=yes\n"), HasSubstr("MUSTER_CLUSTER_FILE=" + Folder() + "/cluster\n"),
                         Not(HasSubstr("SSH_")), Not(HasSubstr("of-another")), HasSubstr("\n0027\n/\n")));
  const CommandId reserve = contact->client.link.Reserve({.task = kTask, .ports = {0}}).value();
  RunUntil(*contact, [&] { return contact->client.reserved.contains(reserve); });
  EXPECT_THAT(contact->client.reserved[reserve], ElementsAre(MatchesRegex("10\\.0\\.0\\.2:[0-9]+")));
  Stop(*contact);
}

TEST_F(AgentCommandTest, TwoAtOnceFindOneAgent) {
  const auto one = Attach(), two = Attach();
  RunUntil(*one, [&] {
    two->client.OnTime();
    return one->client.attached > 0 && two->client.attached > 0;
  });
  EXPECT_EQ(one->client.agent, two->client.agent);
  // The agent speaks with the one that has attached last.
  RunUntil(*one, [&] {
    two->client.OnTime();
    return one->client.connected() != two->client.connected();
  });
  Stop(one->client.connected() ? *one : *two);
}

TEST_F(AgentCommandTest, TheAgentAndItsTasksOutliveTheConnection) {
  auto contact = Attach();
  const CommandId launch = Shell(*contact, "echo $$; exec sleep 1000");
  const pid_t task = PidIn(FirstLine(*contact, launch));
  const std::string agent = contact->client.agent;
  contact->program.Kill();
  contact.reset();
  contact = Attach(2);
  RunUntil(*contact, [&] { return contact->client.attached > 0; });
  EXPECT_EQ(contact->client.agent, agent);
  ASSERT_EQ(contact->client.held.size(), 1U);
  EXPECT_EQ(contact->client.held[0].pid, task);
  Stop(*contact);
  EXPECT_FALSE(Runs(task));
}

// Its guard forks the agent's next life, which has the tasks' processes and what was in their pipes.
TEST_F(AgentCommandTest, AKilledAgentsTasksGoOnWithItsNextLife) {
  auto contact = Attach();
  AgentClient& client = contact->client;
  const std::string gate = ::testing::TempDir() + "/" + job_;
  ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
  const CommandId reserve = client.link.Reserve({.task = kTask, .ports = std::vector<uint32_t>(12)}).value();
  const CommandId launch = Shell(*contact, "echo $$; read line < " + gate + "; echo $line; exit 7");
  const pid_t task = PidIn(FirstLine(*contact, launch));
  const std::string agent = client.agent;
  for (int life = 2; life <= 3; ++life) {
    const int attached = client.attached;
    ASSERT_EQ(kill(AgentPid(), SIGKILL), 0);
    RunUntil(*contact, [&] { return !client.connected(); });
    contact->DialAgain();
    RunUntil(*contact, [&] { return client.attached > attached; });
    EXPECT_EQ(client.agent, agent);
    ASSERT_EQ(client.held.size(), 1U);
    EXPECT_EQ(client.held[0].pid, task);
  }
  // It reserves no second port, can start tasks, and knows of the end.
  const std::vector<std::string> ports = client.reserved[reserve];
  const CommandId again = client.link.Reserve({.task = kTask, .ports = std::vector<uint32_t>(12)}).value();
  RunUntil(*contact, [&] { return client.reserved.contains(again); });
  EXPECT_EQ(client.reserved[again], ports);
  const CommandId other =
      client.link.Launch({.task = {kWorkerJob, 1}, .arguments = {"sh", "-c", "echo other"}}).value();
  RunUntil(*contact, [&] { return client.exits.contains(other); });
  EXPECT_EQ(client.out[other], "other\n");
  std::ofstream(gate) << "through\n";
  RunUntil(*contact, [&] { return client.exits.contains(launch); });
  EXPECT_EQ(client.exits[launch], ExitStatus{.code = 7});
  EXPECT_EQ(client.out[launch], absl::StrCat(task, "\nthrough\n"));
  // It says that a read of the pipe may have died with an agent.
  EXPECT_THAT(client.mistakes, ElementsAre(launch.ToString() + " has an unsure end"));
  Stop(*contact);
  EXPECT_FALSE(Runs(task));
  std::filesystem::remove(gate);
}

// The stray has a session of its own, and no variables by which the agent's next life could find it.
TEST_F(AgentCommandTest, WhatHasLeftItsTaskEndsWithTheRunAlsoIfTheAgentWasKilledMeanwhile) {
  auto contact = Attach();
  const CommandId launch = Shell(*contact, "env -i setsid sleep 1000 >/dev/null 2>&1 & echo $$ $!; exec sleep 1000");
  const std::vector<std::string> pids = absl::StrSplit(FirstLine(*contact, launch), absl::ByAnyChar(" \n"));
  const pid_t task = PidIn(pids[0]), stray = PidIn(pids[1]);
  ASSERT_EQ(kill(AgentPid(), SIGKILL), 0);
  RunUntil(*contact, [&] { return !contact->client.connected(); });
  contact->DialAgain();
  RunUntil(*contact, [&] { return contact->client.attached == 2; });
  EXPECT_TRUE(Runs(task));
  EXPECT_TRUE(Runs(stray));
  Watched ends;
  ends.Add(stray);
  Stop(*contact);
  EXPECT_FALSE(Runs(task));
  ends.WaitForEnds();
}

// Each forks, which a process with threads can't do safely. The first line of a task has its parent, the guard.
TEST_F(AgentCommandTest, TheAgentAndItsGuardHaveOneThreadEachInEveryLife) {
  auto contact = Attach();
  const pid_t guard = PidIn(FirstLine(*contact, Shell(*contact, "echo $PPID; exec sleep 1000")));
  EXPECT_NE(guard, AgentPid());
  for (int life = 1; life <= 2; ++life) {
    for (const pid_t pid : {AgentPid(), guard}) EXPECT_THAT(EntriesOf(absl::StrCat("/proc/", pid, "/task")), SizeIs(1));
    if (life == 2) break;
    ASSERT_EQ(kill(AgentPid(), SIGKILL), 0);
    RunUntil(*contact, [&] { return !contact->client.connected(); });
    contact->DialAgain();
    RunUntil(*contact, [&] { return contact->client.attached == 2; });
  }
  Stop(*contact);
}

// What ends while there is no agent, and what the dead one hadn't told, is told by the next life.
TEST_F(AgentCommandTest, AnEndIsToldByTheNextLife) {
  auto contact = Attach();
  AgentClient& client = contact->client;
  const CommandId launch = Shell(*contact, "echo $$; exec sleep 1000");
  const pid_t task = PidIn(FirstLine(*contact, launch));
  const pid_t agent = AgentPid();
  ASSERT_EQ(kill(agent, SIGSTOP), 0);
  ASSERT_EQ(kill(task, SIGTERM), 0);
  ASSERT_EQ(kill(agent, SIGKILL), 0);
  RunUntil(*contact, [&] { return !client.connected(); });
  contact->DialAgain();
  RunUntil(*contact, [&] { return client.exits.contains(launch); });
  EXPECT_EQ(client.exits[launch], ExitStatus{.signal = SIGTERM});
  Stop(*contact);
}

// As an engine starts it whose hosts reach the supervisor: it connects, and each next life of it, too.
TEST_F(AgentCommandTest, ConnectsToItsSupervisorOverTcp) {
  const std::string file = ::testing::TempDir() + "/" + job_;
  AgentClient client(loop_, job_);
  Socket stream;
  Rendezvous rendezvous = NewRendezvous({});
  const auto listener =
      AgentListener::Listen({"node-1"}, rendezvous.secret, loop_, RealClock(),
                            [&](const std::string& host, Socket socket, const std::string& rest) {
                              EXPECT_EQ(rest, "");
                              client.HangUp();
                              stream = std::move(socket);
                              client.Dial(stream.fd(), stream.fd(), KeyOfHost(rendezvous.secret, host));
                            })
          .value();
  rendezvous.addresses = {absl::StrCat("127.0.0.1:", listener->port())};
  ASSERT_EQ(WriteRendezvous(file, rendezvous), absl::OkStatus());
  auto agent =
      PipedProgram::Start({kMuster, "agent", "--serve", job_, "--rendezvous", file, "--host", "node-1"}, {kUsualPath});
  ASSERT_EQ(agent.status(), absl::OkStatus());
  const auto run_until = [&](const std::function<bool()>& done) {
    const absl::Time give_up = RealClock().Now() + kHang;
    while (!done() && RealClock().Now() < give_up) {
      loop_.RunOnce(RealClock().Now() + absl::Milliseconds(10));
      client.OnTime();
    }
    ASSERT_TRUE(done()) << client.why_ended;
  };
  for (int life = 1; life <= 2; ++life) {
    listener->Want("node-1");
    run_until([&] { return client.attached == life; });
    const CommandId launch =
        client.link.Launch({.task = kTask, .arguments = {"sh", "-c", absl::StrCat("echo ", life)}}).value();
    run_until([&] { return client.exits.contains(launch); });
    EXPECT_EQ(client.out[launch], absl::StrCat(life, "\n"));
    if (life == 1) {
      ASSERT_EQ(kill(AgentPid(), SIGKILL), 0);
      run_until([&] { return !client.connected(); });
    }
  }
  client.link.Stop().value();
  run_until([&] { return client.stopped.has_value() && !client.connected(); });
  std::filesystem::remove(file);
}

// As the actor of a job of Ray holds it, whatever life of the agent that is.
TEST_F(AgentCommandTest, EndsWhenItsStdinIsClosedAndRemovesItsFiles) {
  const std::string file = ::testing::TempDir() + "/" + job_;
  ASSERT_EQ(WriteRendezvous(file, NewRendezvous({"127.0.0.1:1"})), absl::OkStatus());
  auto agent = PipedProgram::Start(
      {kMuster, "agent", "--serve", job_, "--rendezvous", file, "--host", "node-1", "--until_closed"}, {kUsualPath});
  ASSERT_EQ(agent.status(), absl::OkStatus());
  pollfd said = {.fd = agent->stderr_fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&said, 1, static_cast<int>(absl::ToInt64Milliseconds(kHang))), 1) << "that there is no supervisor";
  ASSERT_EQ(kill(AgentPid(), SIGKILL), 0);
  std::string log;
  for (const absl::Time give_up = RealClock().Now() + kHang;
       !absl::StrContains(log, "its life 2 goes on") && RealClock().Now() < give_up;)
    log = PosixFileSystem().ReadFile(Folder() + "/log").value_or("");
  EXPECT_THAT(log, HasSubstr("its life 2 goes on"));
  EXPECT_TRUE(std::filesystem::exists(file));
  agent->CloseStdin();
  pollfd end = {.fd = agent->end_fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&end, 1, static_cast<int>(absl::ToInt64Milliseconds(kHang))), 1);
  EXPECT_EQ(agent->Wait(), ExitStatus{});
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_FALSE(std::filesystem::exists(Folder()));
}

// As two tasks of Spark may have them: without a place of its own, the second one would find the folder locked.
TEST_F(AgentCommandTest, SeveralAgentsOfAJobOnOneHostHavePlacesOfTheirOwn) {
  std::vector<PipedProgram> agents;
  for (const char* place : {"-0", "-1"}) {
    const std::string file = absl::StrCat(::testing::TempDir(), "/", job_, place);
    ASSERT_EQ(WriteRendezvous(file, NewRendezvous({"127.0.0.1:1"})), absl::OkStatus());
    auto agent = PipedProgram::Start({kMuster, "agent", "--serve", job_, "--place", absl::StrCat(job_, place),
                                      "--rendezvous", file, "--host", absl::StrCat("node", place), "--until_closed"},
                                     {kUsualPath});
    ASSERT_EQ(agent.status(), absl::OkStatus());
    agents.push_back(*std::move(agent));
    pollfd said = {.fd = agents.back().stderr_fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&said, 1, static_cast<int>(absl::ToInt64Milliseconds(kHang))), 1) << "that there is no supervisor";
    EXPECT_TRUE(std::filesystem::exists(absl::StrCat(Folder(), place, "/id")));
  }
  EXPECT_FALSE(std::filesystem::exists(Folder()));
  for (PipedProgram& agent : agents) {
    agent.CloseStdin();
    EXPECT_EQ(agent.Wait(), ExitStatus{});
  }
}

class GuardDeathTest : public AgentCommandTest, public ::testing::WithParamInterface<bool> {};

// The kernel kills the tasks, and the agent or the next one what they have started, also without any variables.
TEST_P(GuardDeathTest, NothingIsLeftOfAKilledGuardsTasks) {
  const bool agent_too = GetParam();
  auto contact = Attach();
  const CommandId launch = Shell(*contact, "env -i setsid sleep 1000 & echo $PPID $$ $!; exec sleep 1000");
  const std::vector<std::string> pids = absl::StrSplit(FirstLine(*contact, launch), absl::ByAnyChar(" \n"));
  const std::string agent = contact->client.agent;
  const pid_t agent_pid = AgentPid();
  if (agent_too) {
    ASSERT_EQ(kill(agent_pid, SIGSTOP), 0);
  }
  ASSERT_EQ(kill(PidIn(pids[0]), SIGKILL), 0);
  if (agent_too) {
    ASSERT_EQ(kill(agent_pid, SIGKILL), 0);
  }
  RunUntil(*contact, [&] { return !contact->client.connected(); });
  EXPECT_EQ(contact->program.Wait(), ExitStatus{}) << "the stream has ended";
  // A bridge that comes while the killed ones are still dying finds their socket, which ends with them.
  do {
    contact = Attach(2);
    RunUntil(*contact, [&] { return contact->client.attached > 0 || !contact->client.connected(); });
  } while (contact->client.attached == 0);
  EXPECT_NE(contact->client.agent, agent);
  EXPECT_THAT(contact->client.held, IsEmpty());
  EXPECT_FALSE(Runs(PidIn(pids[1])));
  EXPECT_FALSE(Runs(PidIn(pids[2]))) << "what left its group";
  EXPECT_EQ(OutputOf(*contact, "echo hello"), "hello\n");
  Stop(*contact);
}

INSTANTIATE_TEST_SUITE_P(AgentCommand, GuardDeathTest, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "WithItsAgent" : "Alone"; });

TEST_F(AgentCommandTest, ASignalEndsTasksThenTheAgent) {
  auto contact = Attach();
  const CommandId launch = Shell(*contact, "echo $$; exec sleep 1000");
  FirstLine(*contact, launch);
  ASSERT_EQ(kill(AgentPid(), SIGTERM), 0);
  RunUntil(*contact, [&] { return !contact->client.connected(); });
  // As long as it ends its tasks, it refuses others.
  do {
    contact = Attach(2);
    RunUntil(*contact, [&] { return contact->client.attached > 0 || !contact->client.connected(); });
  } while (contact->client.attached == 0);
  EXPECT_THAT(contact->client.held, IsEmpty());
  Stop(*contact);
}

TEST(AgentCommandMistakesTest, AreUsageErrorsInOneLine) {
  const std::string letters(65, 'x');
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"--attach", "a/b"},
                                                {"--attach", letters},
                                                {"--attach", "a", "--grace", "9"},
                                                {"--attach", "a", "--serve", "b"}}) {
    std::vector<std::string> command = {kMuster, "agent"};
    command.insert(command.end(), words.begin(), words.end());
    const ProgramText text = TextOf(command, "");
    EXPECT_EQ(text.status, ExitStatus{.code = 2});
    EXPECT_EQ(text.output, "");
    EXPECT_THAT(text.errors, MatchesRegex("muster agent: [^\n]+accepted[^\n]+\n"));
  }
}

}  // namespace
}  // namespace muster::agent_command_test
