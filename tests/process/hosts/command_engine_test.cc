// Hosts that a user's own commands get, reach and give back. The files and scripts of docs/command_engine.md run as
// they stand there, with small programs in the places of docker and PBS's; `docker exec` and the other ways without ssh
// enter a simulated host's namespaces.
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "muster/base/testing/built_at.h"
#include "muster/launch/system/shell_word.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/engines.h"
#include "tests/process/testing/page_blocks.h"

namespace muster::command_engine_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::IsEmpty,
    ::testing::Not, ::testing::SizeIs;

constexpr char kPage[] = "command_engine.md";

class CommandEngineHosts : public OnEveryEngine {
 protected:
  void SetUp() override {
    OnEveryEngine::SetUp();
    if (IsSkipped()) return;
    for (const std::string host : {"h1", "h2", "h3"}) {
      // Nothing of the supervisor's environment is there.
      const std::vector<std::string> words = Joined({"exec", "env", "-i", "PATH=/usr/bin:/bin"}, hosts().On(host, {}));
      const std::string enter = absl::StrJoin(
          words, " ", [](std::string* out, const std::string& word) { absl::StrAppend(out, ShellWord(word)); });
      bin_ = WriteProgram("enter_" + host, enter + " \"$@\"");
    }
    environment_ = {absl::StrCat("PATH=", bin_, ":", BinFolder(), ":/usr/bin:/bin")};
  }

  // The files say themselves where they run.
  std::string MoreOfFile() const override { return ""; }
  // Writes a script of the project.
  void Script(const std::string& name, const std::string& text) {
    Write(name, absl::StartsWith(text, "#!") ? text : absl::StrCat("#!/bin/sh\n", text, "\n"));
    std::filesystem::permissions(project() + "/" + name, std::filesystem::perms::owner_all);
  }
  // Writes commands that get `count` hosts, and note in a log what they were asked.
  void WriteCommands(int count) {
    std::string acquire = "echo acquire >>" + Aside("log") + "; echo '{\"job\": \"17\"}'\n";
    for (int i = 1; i <= count; ++i)
      absl::StrAppend(&acquire, "echo '{\"host\": \"h", i, "\", \"address\": \"",
                      SimulatedHosts::AddressOf(absl::StrCat("h", i)), "\"}'\n");
    Script("acquire", acquire);
    Script("enter", "host=$1; shift; exec enter_$host \"$@\"");
    Script("state", "[ ! -e " + Aside("gone.") + "$1 ] || { echo '{\"why\": \"preempted\"}'; exit 3; }");
    Script("release", "echo release $1 >>" + Aside("log"));
  }
  static std::string Commands() {
    return "acquire: {argv: [./acquire, '{hosts}'], refused_exit: [2]}\nstart: {argv: [./enter, '{host}', '{agent}']}\n"
           "state: {argv: [./state, '{host}'], gone_exit: [3]}\nrelease: {argv: [./release, '{job}']}\n";
  }
  // Writes an experiment whose hosts these commands get. `train`: lines of its section.
  void WriteOnCommands(int count, const std::string& train, const std::string& grace = "10s") {
    WriteCommands(count);
    const std::string commands = absl::StrReplaceAll("\n" + Commands(), {{"\n", "\n  "}});
    Write("muster.yml", absl::StrCat("project: toy\non: command\nhosts: ", count, "\ngrace: ", grace,
                                     "\nhosts_by:", commands.substr(0, commands.size() - 2), "train:\n", train));
  }
  // Kills what runs on h1 and has one of these among its words, all at once: none sees another's end.
  static void KillTogether(const std::vector<std::string>& words) {
    for (const int signal : {SIGSTOP, SIGKILL})
      for (const std::string& word : words)
        for (const SimulatedHosts::Running& running : hosts().ProcessesOf("h1"))
          if (absl::StrContains(running.words, word)) kill(running.pid, signal);
  }
  std::string Log() const { return Read(Aside("log")); }
  // Returns the names of what muster holds.
  std::vector<std::string> Held() const {
    return std::filesystem::exists(home() + "/held") ? EntriesOf(home() + "/held") : std::vector<std::string>();
  }
  // Writes the experiment of a chapter of the page, and its scripts under the names that they begin with.
  void WriteChapter(const std::string& chapter, const std::string& file) {
    for (const std::string& script : BlocksOfPage(kPage, chapter, "sh")) {
      const size_t name = script.find("\n# ") + 3;
      Script(script.substr(name, script.find_first_of(" \n", name) - name), script);
    }
    Write("muster.yml", absl::StrReplaceAll(file, {{"/opt/muster/bin", BinFolder()},
                                                   {"/opt/muster/data", SourceFolder() + "/examples/data"},
                                                   {"train:\n", "grace: 10s\ntrain:\n"}}));
  }

  void WriteDocker();
  // Writes PBS's commands. `later`: what qstat does from the second time on, in shell; $asked says how often it was
  // asked. The job runs for all that `later` doesn't exit.
  void WritePbs(const std::string& later);

  std::string bin_;
};

INSTANTIATE_TEST_SUITE_P(, CommandEngineHosts, ::testing::Values("ssh"), EngineName);

// A container is a file that says which host it is. While there is a file DOWN nobody can list them.
constexpr char kFakeDocker[] = R"sh(
cd CONTAINERS
what=$1; shift
case $what in
  run)
    while [ "$1" != --name ]; do shift; done
    echo h$(($(ls | wc -l) + 1)) >"$2" ;;
  inspect)
    [ -e "$3" ] || { echo "Error: No such object: $3" >&2; exit 1; }
    case $2 in *IPAddress*) echo 10.77.0.1$(tr -d h <"$3") ;; *) echo true ;; esac ;;
  exec)
    container=$2; shift 2
    exec "enter_$(cat "$container")" "$@" ;;
  ps)
    [ ! -e DOWN ] || { echo 'Cannot connect to the Docker daemon' >&2; exit 1; }
    ls ;;
  rm) rm "$2"; echo "rm $2" >>LOG ;;
esac
)sh";

void CommandEngineHosts::WriteDocker() {
  std::filesystem::create_directories(Aside("containers"));
  WriteProgram("docker",
               absl::StrReplaceAll(
                   kFakeDocker, {{"CONTAINERS", Aside("containers")}, {"LOG", Aside("log")}, {"DOWN", Aside("down")}}));
}

TEST_P(CommandEngineHosts, TheFileForDockerTrains) {
  const std::vector<std::string> files = BlocksOfPage(kPage, "", "yaml");
  ASSERT_THAT(files, SizeIs(1));
  WriteChapter("Docker", files[0]);
  WriteDocker();
  const std::string shown = Out({"train"});
  EXPECT_THAT(LinesOf(shown, "1.master"), Contains(HasSubstr("Test accuracy "))) << shown;
  EXPECT_EQ(TasksOf("1")["1.master"]["host"], "muster-digits-1-1");
  EXPECT_EQ(TasksOf("1")["1.worker.1"]["host"], "muster-digits-1-2");
  EXPECT_EQ(Log(), "rm muster-digits-1-1\nrm muster-digits-1-2\n");
  EXPECT_THAT(Held(), IsEmpty());
}

// A release that has deleted nothing, and ends well, would let muster forget them.
TEST_P(CommandEngineHosts, ContainersThatDockerCantListNowAreGivenBackLater) {
  const std::vector<std::string> files = BlocksOfPage(kPage, "", "yaml");
  ASSERT_THAT(files, SizeIs(1));
  WriteChapter("Docker",
               files[0].substr(0, files[0].find("train:\n")) + "train:\n  framework: any\n  run: echo done\n");
  WriteDocker();
  std::ofstream(Aside("down")) << "yes\n";
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_EQ(Log(), "");
  EXPECT_THAT(Held(), Not(IsEmpty())) << "the containers run";
  EXPECT_THAT(Muster({"status"}).err,
              HasSubstr("couldn't be given back: ./docker_release muster-digits-1 exited with 1 "
                        "(Cannot connect to the Docker daemon)"));
  std::filesystem::remove(Aside("down"));
  EXPECT_THAT(Muster({"status"}).err, HasSubstr("gave back the hosts of experiment 1"));
  EXPECT_EQ(Log(), "rm muster-digits-1-1\nrm muster-digits-1-2\n");
  EXPECT_THAT(Held(), IsEmpty());
}

void CommandEngineHosts::WritePbs(const std::string& later) {
  WriteProgram("ssh", "exec /usr/bin/ssh -F " + hosts().ssh_config() + " \"$@\"");
  WriteProgram("sleep", "exec /bin/sleep 0.01");
  WriteProgram("qsub", absl::StrCat("echo \"qsub $*\" >>", Aside("log"), "; echo 17.head"));
  WriteProgram("qstat",
               absl::StrCat("[ \"$*\" = '-f 17.head' ] || exit 153\necho asked >>", Aside("asked"), "\nasked=$(wc -l <",
                            Aside("asked"),
                            ")\nif [ $asked -lt 2 ]; then printf '    job_state = Q\\n    comment = Not Running: "
                            "Insufficient\\n\\t amount of resource: ncpus\\n'; exit; fi\n",
                            later, "\nprintf '    job_state = R\\n    exec_host = h1/0*2\\n\\t+h2/1*2\\n'"));
  WriteProgram("qdel", absl::StrCat("echo \"qdel $*\" >>", Aside("log")));
}

TEST_P(CommandEngineHosts, TheFileForPbsTrains) {
  const std::vector<std::string> files = BlocksOfPage(kPage, "PBS", "yaml");
  ASSERT_THAT(files, SizeIs(1));
  WriteChapter("PBS", files[0]);
  WritePbs("[ $asked -gt 2 ] || { echo 'qstat: cannot connect to server head' >&2; exit 111; }");
  const std::string shown = Out({"train"});
  EXPECT_THAT(shown, AllOf(HasSubstr("waiting for hosts: Q Not Running: Insufficient amount of resource: ncpus"),
                           HasSubstr("waiting for hosts: qstat has exited with 111")));
  EXPECT_THAT(LinesOf(shown, "1.master"), Contains(HasSubstr("Test accuracy "))) << shown;
  EXPECT_EQ(TasksOf("1")["1.worker.1"]["host"], "h2");
  EXPECT_EQ(Log(), "qsub -N muster-1 -l select=2:ncpus=1 -l place=scatter -- /bin/sleep 8640000\nqdel 17.head\n");
}

// A script that doesn't see it asks on, until the job runs in spite of all: a wait without end would prove nothing
// more.
TEST_P(CommandEngineHosts, AJobThatPbsNoLongerKnowsIsNotWaitedFor) {
  const std::vector<std::string> files = BlocksOfPage(kPage, "PBS", "yaml");
  ASSERT_THAT(files, SizeIs(1));
  WriteChapter("PBS", files[0]);
  WritePbs("[ $asked -gt 5 ] || { echo 'qstat: Unknown Job Id 17.head' >&2; exit 153; }");
  const Said said = Muster({"train"});
  EXPECT_NE(said.exit_code, 0) << said.out;
  EXPECT_THAT(said.out + said.err, HasSubstr("the job has ended before it ran"));
  EXPECT_EQ(StateOf("1"), "FAILED");
  EXPECT_EQ(Read(Aside("asked")), "asked\nasked\n");
  EXPECT_THAT(Log(), HasSubstr("qdel 17.head\n"));
  EXPECT_THAT(Held(), IsEmpty());
}

TEST_P(CommandEngineHosts, AnotherAttemptGetsHostsOfItsOwn) {
  WriteOnCommands(1, "  framework: any\n  run: echo ran on $(uname -n)\n");
  EXPECT_THAT(LinesOf(Out({"train"}), "1.master"), Contains("ran on h1"));
  EXPECT_THAT(LinesOf(Out({"train", "--experiment", "1"}), "1.master"), Contains("ran on h1"));
  EXPECT_EQ(Log(), "acquire\nrelease 17\nacquire\nrelease 17\n");
  EXPECT_THAT(Muster({"train", "--dry-run"}).out,
              AllOf(ContainsRegex("\n  on +command "), HasSubstr("hosts: 1, from ./acquire")));
  EXPECT_EQ(Log(), "acquire\nrelease 17\nacquire\nrelease 17\n") << "that gets none";
}

TEST_P(CommandEngineHosts, AFailingTasksHostsAreGivenBack) {
  WriteOnCommands(1, "  framework: any\n  restart: {policy: never}\n  run: exit 7\n");
  EXPECT_EQ(Muster({"train"}).exit_code, 7);
  EXPECT_EQ(Log(), "acquire\nrelease 17\n");
}

TEST_P(CommandEngineHosts, HostsThatCannotBeReachedAreGivenBack) {
  WriteOnCommands(1, "  framework: any\n  run: echo never\n");
  Script("enter", "echo 'no such container' >&2; exit 4");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 2) << said.err;
  EXPECT_THAT(said.out,
              HasSubstr("h1 has no agent: ./enter h1 '{agent}' exited with 4 before one spoke (no such container)"));
  EXPECT_EQ(Log(), "acquire\nrelease 17\n");
}

TEST_P(CommandEngineHosts, ARefusalIsTheRunsEnd) {
  WriteOnCommands(1, "  framework: any\n  run: echo never\n");
  Script("acquire", "echo 'no such queue' >&2; exit 2");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 2) << said.err;
  EXPECT_THAT(said.err, HasSubstr("it got no hosts: the hosts are refused: ./acquire 1 exited with 2 (no such queue)"));
  EXPECT_EQ(StateOf("1"), "FAILED");
  EXPECT_THAT(Held(), IsEmpty());
}

TEST_P(CommandEngineHosts, StatusSaysWhyItWaitsAndKillEndsTheWaiting) {
  const ScriptGate gate(Aside("gate"));
  WriteOnCommands(1, "  framework: any\n  run: echo never\n");
  Script("acquire", "echo '{\"job\": \"17\"}'; echo '{\"waits\": \"Priority\"}'; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  train->WaitForOut("waiting for hosts: Priority");
  EXPECT_EQ(StateOf("1"), "PENDING");
  EXPECT_THAT(Out({"status", "1"}), HasSubstr("it waits for its hosts: Priority"));
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 0);
  EXPECT_EQ(train->Wait(), 130) << train->err;
  EXPECT_EQ(StateOf("1"), "KILLED");
  EXPECT_EQ(Log(), "release 17\n");
}

TEST_P(CommandEngineHosts, TheNextCommandGivesBackWhatAKilledSupervisorHeld) {
  WriteOnCommands(1, "  framework: any\n  run: echo ready; sleep 1000\n");
  const auto train = StartMuster({"train"});
  train->WaitForOut("ready");
  KillSupervisor("1");
  EXPECT_EQ(train->Wait(), 137);
  EXPECT_EQ(Log(), "acquire\n");
  EXPECT_THAT(Muster({"status"}).err,
              HasSubstr("muster: gave back the hosts of experiment 1, which were still held: ./release 17"));
  EXPECT_THAT(Muster({"status"}).err, Not(HasSubstr("gave back")));
  EXPECT_EQ(Log(), "acquire\nrelease 17\n");
  EXPECT_THAT(Held(), IsEmpty());
}

// The acquire that it leaves is ended, too; the fixture looks for it.
TEST_P(CommandEngineHosts, ASupervisorThatIsKilledWhileItWaitsHoldsNothingLonger) {
  const ScriptGate gate(Aside("gate"));
  WriteOnCommands(1, "  framework: any\n  run: echo never\n");
  Script("acquire", "echo '{\"job\": \"17\"}'; echo '{\"waits\": \"Priority\"}'; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  train->WaitForOut("waiting for hosts: Priority");
  KillSupervisor("1");
  EXPECT_EQ(train->Wait(), 137);
  EXPECT_THAT(Muster({"status"}).err, HasSubstr("gave back the hosts of experiment 1"));
  EXPECT_EQ(Log(), "release 17\n");
}

// With a grace of an hour nothing but the word of `state` lets its task go elsewhere.
TEST_P(CommandEngineHosts, TasksOfAHostThatIsGoneMoveAtOnce) {
  const std::string crashed = Aside("crashed");
  WriteOnCommands(
      2,
      "  framework: tensorflow\n  tensorflow: {distributed: {worker: 2}}\n  run: echo on $(uname -n); [ -e " + crashed +
          " ] || sleep 1000\n",
      "1h");
  const auto train = StartMuster({"train", "--no-venv"});
  AwaitLines(*train, "1.master", 2);
  AwaitLines(*train, "1.worker.1", 2);
  EXPECT_THAT(LinesOf(train->out, "1.worker.1"), Contains("on h2"));
  std::ofstream(crashed) << "yes\n";
  std::ofstream(Aside("gone.h2")) << "yes\n";
  hosts().Crash("h2");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err;
  EXPECT_THAT(LinesOf(train->out, "1.worker.1"), Contains("on h1"));
  EXPECT_EQ(Log(), "acquire\nrelease 17\n");
  hosts().Restart("h2");
}

// `start` leads to the guard's next agent, which has the task's process.
TEST_P(CommandEngineHosts, TheTasksOfAKilledAgentGoOn) {
  const ScriptGate gate(Aside("gate"));
  WriteOnCommands(1, absl::StrCat("  framework: any\n  run: echo life >>", Aside("lives"), "; echo ready; read line < ",
                                  gate.path(), "; echo done\n"));
  const auto train = StartMuster({"train"});
  train->WaitForOut("ready");
  KillTogether({" --serve "});
  train->WaitForOut("the agent on h1 was killed; another goes on with its 1 task");
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err;
  EXPECT_THAT(LinesOf(train->out, "1.master"), Contains("done"));
  EXPECT_EQ(Read(Aside("lives")), "life\n");
  EXPECT_EQ(Log(), "acquire\nrelease 17\n") << "they were the run's all the time";
}

// The agent that `start` brings up next ends what is left of the task, before that begins anew.
TEST_P(CommandEngineHosts, NothingIsLeftOfATaskWhoseAgentAndGuardAreKilled) {
  const std::string lives = Aside("lives");
  WriteOnCommands(1, absl::StrCat("  framework: any\n  run: |\n    echo life >>", lives, "\n    life=$(wc -l <", lives,
                                  ")\n    setsid env -i sleep 100$life &\n    echo life $life\n",
                                  "    [ $life = 2 ] || sleep 1000\n"));
  const auto train = StartMuster({"train"});
  train->WaitForOut("life 1");
  const auto left = [] {
    std::vector<std::string> words;
    for (const SimulatedHosts::Running& running : hosts().ProcessesOf("h1"))
      if (absl::StartsWith(running.words, "sleep 1001")) words.push_back(running.words);
    return words;
  };
  while (left().empty()) sched_yield();  // it has become that program by then
  KillTogether({"run-guard ", " --serve "});
  train->WaitForOut("the agent on h1 has died, and its tasks with it");
  train->WaitForOut("life 2");
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err;
  EXPECT_EQ(Log(), "acquire\nrelease 17\n") << "they were the run's all the time";
}

TEST_P(CommandEngineHosts, AnEvaluatorsHostThatCannotBeReachedIsLeftOut) {
  Write("run.sh",
        "case $TF_CONFIG in\n  *'\"type\":\"evaluator\"'*) echo evaluating on $(uname -n) ;;\n"
        "  *) echo trained ;;\nesac\n");
  WriteOnCommands(3,
                  "  framework: tensorflow\n  tensorflow: {distributed: {master: 1, worker: 1, evaluator: true}}\n"
                  "  run: sh run.sh\n");
  Script("enter",
         "host=$1; shift; [ $host != h3 ] || { echo 'no such container' >&2; exit 4; }; exec enter_$host \"$@\"");
  const std::string shown = Out({"train"});
  EXPECT_THAT(shown, ContainsRegex("h3 isn't used: h3 has no agent: ./enter h3 '[{]agent[}]' exited with 4 before one "
                                   "spoke \\(no such container\\); evaluator runs on h[12] instead\n"));
  for (const char* task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(shown, task), Contains("trained")) << task;
  EXPECT_THAT(LinesOf(shown, "1.evaluator"), Contains(ContainsRegex("^evaluating on h[12]$")));
  EXPECT_EQ(StateOf("1"), "FINISHED");
  EXPECT_EQ(Log(), "acquire\nrelease 17\n");
}

// The network is away, but not the way by which `start` gets there.
TEST_P(CommandEngineHosts, AHostThatIsUnpluggedIsStillHeardByItsWay) {
  const ScriptGate gate(Aside("gate"));
  WriteOnCommands(1, "  framework: any\n  run: echo ready; read line < " + gate.path() + "; echo done\n");
  const auto train = StartMuster({"train"});
  train->WaitForOut("ready");
  hosts().Cut("h1");
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 0) << train->err;
  hosts().Heal("h1");
  EXPECT_EQ(Log(), "acquire\nrelease 17\n");
}

TEST_P(CommandEngineHosts, MusterRunTakesThemFromAFile) {
  WriteCommands(2);
  Write("commands.yml", Commands());
  std::filesystem::create_directories(Aside("shared"));
  ProcessOptions options = Options();
  options.directory = Aside("shared");
  const std::vector<std::string> words = {"run",     "--on",      "command", "--hosts_by", project() + "/commands.yml",
                                          "--hosts", "2",         "--grace", "10",         "--ps",
                                          "0",       "--workers", "2",       "--"};
  Process run(Command(Joined(words, {"sh", "-c", "echo on $(uname -n)"})), options);
  EXPECT_EQ(run.Wait(), 0) << run.err;
  EXPECT_THAT(After(run.out, "[worker:0] "), Contains("on h1"));
  EXPECT_THAT(After(run.out, "[worker:1] "), Contains("on h2"));
  EXPECT_EQ(Log(), "acquire\nrelease 17\n");

  Process killed(Command(Joined(words, {"sh", "-c", "echo ready; sleep 1000"})), options);
  killed.WaitForOut("ready");
  killed.Signal(SIGKILL);
  killed.Wait();
  EXPECT_EQ(Log(), "acquire\nrelease 17\nacquire\n");
  EXPECT_THAT(Muster({"ls"}).err, HasSubstr("gave back the hosts of muster run, process "));
  EXPECT_EQ(Log(), "acquire\nrelease 17\nacquire\nrelease 17\n");
}

TEST_P(CommandEngineHosts, MistakesAreFoundBeforeAnythingIsAskedFor) {
  WriteCommands(1);
  Write("muster.yml",
        "project: toy\non: command\nhosts: 1\nhosts_by:\n  acquire: {argv: [./acquire]}\n  start: {argv: [./enter, "
        "'{hots}', '{agent}']}\ntrain:\n  framework: any\n  run: echo never\n");
  EXPECT_THAT(Mistake({"train"}),
              HasSubstr("hosts_by.start.argv: has the placeholder {hots}, which there isn't (nearest: host)"));
  WriteOnCommands(1, "  framework: any\n  run: echo never\n");
  EXPECT_THAT(Mistake({"train", "--hosts", "h1,h2"}), HasSubstr("how many hosts acquire shall get"));
  std::filesystem::remove(project() + "/state");
  std::filesystem::permissions(project() + "/release", std::filesystem::perms::owner_read);
  EXPECT_THAT(Mistake({"train"}),
              AllOf(HasSubstr("hosts_by: state: program '" + project() + "/state' not found"),
                    HasSubstr("hosts_by: release: program '" + project() + "/release' is not executable (chmod +x?)")));
  EXPECT_EQ(Log(), "");
}

}  // namespace
}  // namespace muster::command_engine_test
