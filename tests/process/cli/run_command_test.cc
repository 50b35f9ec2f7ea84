// `muster run` as a user runs it: the real command, with shell scripts as the tasks' program. The tests wait for events
// (a line, an end), never for time.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/process.h"

namespace muster::run_command_test {
namespace {

using ::testing::HasSubstr, ::testing::Not;

// Prefix of each script: sets $task to "worker:1", for example.
constexpr char kWhoAmI[] =
    "type=${TF_CONFIG##*\\\"type\\\":\\\"}; type=${type%%\\\"*}; "
    "index=${TF_CONFIG##*\\\"index\\\":}; task=$type:${index%%[,\\}]*}; ";

// `muster run` with `words` as arguments.
class MusterRun : public Process {
 public:
  explicit MusterRun(const std::vector<std::string>& words, const ProcessOptions& options = {})
      : Process(Joined({BinFolder() + "/muster", "run"}, words), options) {}
  // Each task runs `script`.
  MusterRun(const std::vector<std::string>& flags, const std::string& script)
      : MusterRun(Joined(flags, {"--", "sh", "-c", kWhoAmI + script})) {}
};

TEST(RunCommand, ExitCodeIsTheChiefs) {
  for (const auto& [ending, code] : std::map<std::string, int>{{"exit 0", 0}, {"exit 7", 7}, {"kill -9 $$", 137}}) {
    MusterRun run({"--ps", "1", "--workers", "1", "--chief", "1", "--max-restarts", "0"},
                  "[ $task = chief:0 ] || exit 0; " + ending);
    EXPECT_EQ(run.Wait(), code) << run.err;
  }
  MusterRun without_chief({"--ps", "0", "--workers", "2"}, "[ $task = worker:0 ] && exit 5; exit 0");
  EXPECT_EQ(without_chief.Wait(), 5);
}

TEST(RunCommand, AProgramSaysItsHelpOnceAndNotOnceATask) {
  for (const char* help : {"--help", "-h"}) {
    MusterRun run({"--ps", "2", "--workers", "3", "--", BinFolder() + "/muster", help});
    EXPECT_EQ(run.Wait(), 0);
    EXPECT_THAT(run.out, testing::StartsWith("Distributed training"));
    EXPECT_THAT(run.out, HasSubstr("\n  algorithms "));
    EXPECT_EQ(run.err, "");
  }
}

// A program of any kind binds the port that its TF_CONFIG names, as a server does, with SO_REUSEADDR; one that doesn't
// set that option is started once more, with the port no longer held for it.
TEST(RunCommand, AnyProgramCanBindItsAddress) {
  constexpr char kServer[] =
      "import json, os, socket, sys\n"
      "config = json.loads(os.environ['TF_CONFIG'])\n"
      "host, port = config['cluster']['worker'][0].split(':')\n"
      "server = socket.socket()\n"
      "if sys.argv[1] == 'reuse': server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
      "server.bind((host, int(port)))\n"
      "server.listen()\n"
      "print('listens')\n";
  for (const std::string option : {"reuse", "plain"}) {
    MusterRun run({"--ps", "0", "--workers", "1", "--", "python3", "-c", kServer, option});
    EXPECT_EQ(run.Wait(), 0) << run.err;
    EXPECT_THAT(After(run.out, "[worker:0] "), testing::ElementsAre("listens"));
    EXPECT_EQ(run.err.find("says that its address is in use") != std::string::npos, option == "plain") << run.err;
  }
}

TEST(RunCommand, PrefixesEveryLineOfBothStreams) {
  MusterRun run({"--ps", "1", "--workers", "2"}, "echo one; echo two >&2; printf three");
  EXPECT_EQ(run.Wait(), 0);
  for (const std::string task : {"ps:0", "worker:0", "worker:1"}) {
    EXPECT_THAT(After(run.out, "[" + task + "] "), testing::ElementsAre("one", "three"));
    EXPECT_THAT(After(run.err, "[" + task + "] "), testing::ElementsAre("two"));
  }
}

TEST(RunCommand, LinesOfManyTasksNeverMix) {
  // Lines longer than a pipe takes at once, from four tasks on both streams, all into one pipe.
  MusterRun run({"--ps", "0", "--workers", "4", "--", "sh", "-c",
                 "for i in 1 2 3 4 5 6 7 8 9; do printf '%05000d\\n' 0; printf '%05000d\\n' 0 >&2; done"},
                {.output_together = true});
  EXPECT_EQ(run.Wait(), 0);
  const std::vector<std::string> whole(18, std::string(5000, '0'));
  for (const std::string worker : {"0", "1", "2", "3"}) EXPECT_EQ(After(run.out, "[worker:" + worker + "] "), whole);
  EXPECT_EQ(After(run.out, "").size(), 1 + 1 + 4 + 4 * 18);  // the run's line, its end, a line per task, theirs
}

// Ten megabytes, ended by _exit without flushing anything.
constexpr char kTenMegabytes[] =
    "import os\n"
    "for i in range(100): os.write(1, b''.join(b'%07d %092d\\n' % (1000 * i + k, 0) for k in range(1000)))\n"
    "os._exit(1)\n";

TEST(RunCommand, AllThatATaskHasWrittenComesBeforeItsEnd) {
  MusterRun much({"--ps", "0", "--max-restarts", "0", "--", "python3", "-c", kTenMegabytes}, {.output_together = true});
  EXPECT_EQ(much.Wait(), 1);
  const std::vector<std::string> lines = After(much.out, "[worker:0] ");
  ASSERT_EQ(lines.size(), 100000);
  EXPECT_THAT(lines.back(), testing::StartsWith("0099999 "));
  EXPECT_LT(much.out.rfind("[worker:0] 0099999"), much.out.find("worker:0 exited with 1"));
  MusterRun killed({"--ps", "0", "--max-restarts", "0"}, "printf 'no line end'; kill -9 $$");
  EXPECT_EQ(killed.Wait(), 137);
  EXPECT_EQ(killed.out, "[worker:0] no line end\n");
}

TEST(RunCommand, OfALineThatIsOverwrittenTheLastStateIsShown) {
  MusterRun run({"--ps", "0"}, "printf '\\r  1%%'; printf '\\r 50%%\\r100%%\\n'; printf 'a\\r\\nb\\r' >&2");
  EXPECT_EQ(run.Wait(), 0);
  EXPECT_EQ(run.out, "[worker:0] 100%\n");
  EXPECT_THAT(After(run.err, "[worker:0] "), testing::ElementsAre("a", "b"));
}

TEST(RunCommand, ColoursOnlyWhenAsked) {
  MusterRun always({"--ps", "0", "--color", "always"}, "echo hi");
  EXPECT_EQ(always.Wait(), 0);
  EXPECT_EQ(always.out, "\x1b[36m[worker:0]\x1b[0m hi\n");
  MusterRun automatic({"--ps", "0"}, "echo hi");  // a pipe isn't a terminal
  EXPECT_EQ(automatic.Wait(), 0);
  EXPECT_EQ(automatic.out, "[worker:0] hi\n");
}

TEST(RunCommand, NamesTheFirstFailureWithItsLastLines) {
  // The chief ends once worker 1 has, when the test tells it to.
  MusterRun run({"--ps", "0", "--workers", "2"},
                "if [ $task = worker:1 ]; then seq 1 12; echo why >&2; exit 3; fi; trap 'exit 0' USR1; echo pid $$; "
                "while :; do sleep 1000 & wait; done");
  run.WaitForErr("worker:1 exited with 3; the others go on");
  run.WaitForOut("[worker:0] pid ");
  run.WaitForOut("\n[worker:1] 12\n");
  const pid_t chief = std::stoi(After(run.out, "[worker:0] pid ").at(0));
  ASSERT_EQ(kill(chief, SIGUSR1), 0);
  EXPECT_EQ(run.Wait(), 0);
  EXPECT_THAT(run.err, HasSubstr("first failure: worker:1 exited with 3 — its last lines:\n"));
  const std::vector<std::string> last = After(run.err, "[muster]   ");
  EXPECT_EQ(last.size(), 10);
  EXPECT_THAT(last, testing::IsSupersetOf({"12", "why"}));
}

TEST(RunCommand, AFailedChiefEndsTheOthers) {
  MusterRun run({"--ps", "1", "--workers", "1", "--chief", "1"},
                "if [ $task = chief:0 ]; then exit 9; fi; while :; do sleep 1000; done");
  EXPECT_EQ(run.Wait(), 9);
  EXPECT_THAT(run.err, HasSubstr("chief:0 exited with 9: ending the others"));
  EXPECT_THAT(run.err, HasSubstr("first failure: chief:0 exited with 9; it wrote nothing"));
}

TEST(RunCommand, WhoOutlivesTheChiefTooLongIsEnded) {
  MusterRun run({"--ps", "1", "--workers", "1", "--stop-grace", "0"},
                "[ $task = worker:0 ] && exit 0; trap '' TERM; while :; do sleep 1000; done");
  EXPECT_EQ(run.Wait(), 0);
  EXPECT_THAT(run.err, HasSubstr("after worker:0 had ended, and being ended now: ps:0"));
  EXPECT_THAT(run.err, Not(HasSubstr("first failure")));
}

// A task is ready once its sleep has begun: until then that process has the shell's trap, which would take the signal.
TEST(RunCommand, InterruptedOnceAllEndGracefullyServersLast) {
  MusterRun run({"--ps", "1", "--workers", "1", "--chief", "1"},
                "code=0; [ $task = chief:0 ] && code=5; trap 'echo bye; exit $code' TERM; sleep 1000 & "
                "until grep -q sleep /proc/$!/comm; do :; done; echo ready; while :; do wait; done");
  for (const std::string task : {"ps:0", "chief:0", "worker:0"}) run.WaitForOut("[" + task + "] ready");
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 5);
  EXPECT_THAT(run.err, HasSubstr("interrupted: ending"));
  const size_t server = run.out.find("[ps:0] bye");
  ASSERT_NE(server, std::string::npos);
  EXPECT_LT(run.out.find("[chief:0] bye"), server);
  EXPECT_LT(run.out.find("[worker:0] bye"), server);
}

TEST(RunCommand, InterruptedTwiceKillsAtOnce) {
  MusterRun run({"--ps", "1", "--workers", "1"}, "trap '' TERM INT; echo ready; while :; do sleep 1000; done");
  run.WaitForOut("[ps:0] ready");
  run.WaitForOut("[worker:0] ready");
  run.Signal(SIGINT);
  run.WaitForErr("interrupted: ending");
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), 137);
  EXPECT_THAT(run.err, HasSubstr("interrupted again: killing ps:0, worker:0"));
}

// Both signals wait for the launcher, which is stopped meanwhile. The kernel merges two equal signals sent to a
// process, but not one of those with one sent to its thread.
TEST(RunCommand, TheSameSignalOfTheSameSenderTwiceAtOnceIsOneInterrupt) {
  MusterRun run({"--ps", "0", "--workers", "1"},
                "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 1000 & wait; done");
  run.WaitForOut("[worker:0] ready");
  run.Signal(SIGSTOP);
  siginfo_t stopped = {};
  ASSERT_EQ(waitid(P_PID, run.pid(), &stopped, WSTOPPED), 0);
  run.Signal(SIGTERM);
  ASSERT_EQ(tgkill(run.pid(), run.pid(), SIGTERM), 0);
  run.Signal(SIGCONT);
  EXPECT_EQ(run.Wait(), 5);
  EXPECT_THAT(run.out, HasSubstr("bye"));
  EXPECT_THAT(run.err, Not(HasSubstr("interrupted again")));
}

TEST(RunCommand, TheSameSignalOfAnotherSenderIsAnotherInterrupt) {
  MusterRun run({"--ps", "0", "--workers", "1"}, "trap '' TERM; echo ready; while :; do sleep 1000; done");
  run.WaitForOut("[worker:0] ready");
  run.Signal(SIGTERM);
  run.WaitForErr("interrupted: ending");
  Process another({"/bin/kill", "-TERM", absl::StrCat(run.pid())});
  EXPECT_EQ(another.Wait(), 0);
  EXPECT_EQ(run.Wait(), 137);
  EXPECT_THAT(run.err, HasSubstr("interrupted again: killing worker:0"));
}

TEST(RunCommand, InterruptIsHeardWhileNobodyReadsTheOutput) {
  MusterRun run({"--ps", "0", "--workers", "2"},
                "trap '' TERM; while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done");
  run.WaitForOut("[worker:0] y");
  run.WaitForOut("[worker:1] y");
  run.Signal(SIGINT);
  run.WaitForErr("interrupted: ending");
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Reap(), 137);
}

TEST(RunCommand, NothingSurvivesKillNineOfTheLauncher) {
  // Each task has a child in its group, one that ignores signals, and one in its own session.
  MusterRun run({"--ps", "1", "--workers", "2"},
                "sleep 1000 & echo pid $!; sh -c 'trap \"\" TERM HUP INT; echo pid $$; sleep 1000; :' & "
                "setsid sh -c 'echo pid $$; exec sleep 1000' & echo pid $$; wait");
  const auto pids = [&run] {
    std::vector<std::string> found;
    const std::string whole_lines = run.out.substr(0, run.out.rfind('\n') + 1);
    for (const std::string task : {"ps:0", "worker:0", "worker:1"}) {
      for (const std::string& pid : After(whole_lines, "[" + task + "] pid ")) found.push_back(pid);
    }
    return found;
  };
  while (pids().size() < 12) run.ReadSomeOut();
  Watched watched;
  for (const std::string& pid : pids()) watched.Add(std::stoi(pid));
  const std::string children =
      "/proc/" + std::to_string(run.pid()) + "/task/" + std::to_string(run.pid()) + "/children";
  std::ifstream list(children);
  for (pid_t child; list >> child;) watched.Add(child);  // including the guard
  EXPECT_GE(watched.size(), 12 + 4);
  run.Signal(SIGKILL);
  EXPECT_EQ(run.Reap(), 137);
  watched.WaitForEnds();
}

TEST(RunCommand, DryRunStartsNothing) {
  const std::string mark = testing::TempDir() + "run_command_test_started";
  (void)PosixFileSystem().Remove(mark);
  MusterRun run({"--ps", "1", "--workers", "2", "--chief", "1", "--model_dir", "some dir", "--env", "A=b", "--dry-run"},
                "touch " + mark);
  EXPECT_EQ(run.Wait(), 0);
  EXPECT_EQ(run.err, "");
  EXPECT_FALSE(PosixFileSystem().Exists(mark));
  EXPECT_THAT(After(run.out, "# "), testing::ElementsAre(HasSubstr("Paste these lines"), "ps:0", "chief:0 (the chief)",
                                                         "worker:0", "worker:1"));
  const std::vector<std::string> lines = After(run.out, "A=b TF_CONFIG='");
  ASSERT_EQ(lines.size(), 4);
  const auto config = nlohmann::json::parse(lines[3].substr(0, lines[3].find('\'')));
  EXPECT_EQ(config["task"], nlohmann::json({{"type", "worker"}, {"index", 1}}));
  EXPECT_EQ(config["model_dir"], "some dir");
  std::set<std::string> addresses;
  for (const auto& job : config["cluster"]) addresses.insert(job.begin(), job.end());
  EXPECT_EQ(addresses.size(), 4);
  EXPECT_THAT(run.out, HasSubstr("\nexport MUSTER_JOB_TOKEN="));
}

TEST(RunCommand, TheEvaluatorStandsOutsideTheCluster) {
  MusterRun run({"--ps", "1", "--workers", "1", "--evaluator"}, "echo \"$TF_CONFIG\"");
  EXPECT_EQ(run.Wait(), 0);
  const auto config = nlohmann::json::parse(After(run.out, "[evaluator:0] ").at(0));
  EXPECT_EQ(config["task"], nlohmann::json({{"type", "evaluator"}, {"index", 0}}));
  EXPECT_FALSE(config["cluster"].contains("evaluator"));
  EXPECT_EQ(config["cluster"].size(), 2);
}

TEST(RunCommand, TasksShareASecretThatIsNotOnTheCommandLine) {
  MusterRun run({"--ps", "1", "--workers", "1"},
                "echo $MUSTER_JOB_TOKEN; tr '\\0' ' ' </proc/$PPID/cmdline >&2; echo >&2");
  EXPECT_EQ(run.Wait(), 0);
  const std::string token = After(run.out, "[worker:0] ").at(0);
  EXPECT_EQ(token.size(), 64);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(After(run.out, "[ps:0] ").at(0), token);
  EXPECT_THAT(run.err, HasSubstr("/muster run"));
  EXPECT_THAT(run.err, Not(HasSubstr(token)));
  MusterRun again({"--ps", "0", "--workers", "1"}, "echo $MUSTER_JOB_TOKEN");
  EXPECT_EQ(again.Wait(), 0);
  EXPECT_NE(After(again.out, "[worker:0] ").at(0), token);
}

TEST(RunCommand, TheUsersOwnSecretIsKept) {
  MusterRun run(std::vector<std::string>{"--ps", "0", "--", "sh", "-c", "echo $MUSTER_JOB_TOKEN"},
                {.environment = {{"MUSTER_JOB_TOKEN", "a token of my own"}}});
  EXPECT_EQ(run.Wait(), 0);
  EXPECT_EQ(After(run.out, "[worker:0] ").at(0), "a token of my own");
}

TEST(RunCommand, WhoIsKilledIsStartedAgain) {
  ScratchFolder seen;
  MusterRun run({"--ps", "0", "--workers", "1"},
                "[ -e " + seen / "before" + " ] || { touch " + seen / "before" + "; kill -9 $$; }; exit 4");
  EXPECT_EQ(run.Wait(), 4) << "the second life's";
  EXPECT_THAT(run.err,
              HasSubstr("worker:0 was killed by signal 9 (killed), from outside: starting it again (restart 1 of 10)"));
}

TEST(RunCommand, ProgramsWordsArriveAsTheyAre) {
  MusterRun run(
      std::vector<std::string>{"--ps", "0", "--", "printf", "<%s>\\n", "[a,b]", "", "--", "--ps", "run", "ps", "a b"});
  EXPECT_EQ(run.Wait(), 0);
  EXPECT_THAT(After(run.out, "[worker:0] "),
              testing::ElementsAre("<[a,b]>", "<>", "<-->", "<--ps>", "<run>", "<ps>", "<a b>"));
}

TEST(RunCommand, ValuesOfVariablesArriveAsTheyAre) {
  const ScratchFolder scratch;
  const std::string odd = "a\nb \"c\" 'd' %e %% $HOME `f` \\ \t=\xff";
  const std::string function = "() {  echo \"hi\";\n echo 100%\n}";
  MusterRun run({"--ps", "0", "--env", "OWN", "--env", "BASH_FUNC_hello%%", "--env", "GIVEN=" + odd, "--env",
                 "EMPTY=", "--", "cp", "/proc/self/environ", scratch / "environ"},
                {.environment = {{"OWN", odd}, {"BASH_FUNC_hello%%", function}, {"GIVEN", "replaced"}}});
  EXPECT_EQ(run.Wait(), 0) << run.err;
  std::vector<std::string> seen;
  for (const std::string& variable : std::vector<std::string>(absl::StrSplit(scratch.Read("environ"), '\0')))
    for (const char* name : {"OWN=", "BASH_FUNC_hello%%=", "GIVEN=", "EMPTY="})
      if (variable.starts_with(name)) seen.push_back(variable);
  EXPECT_THAT(seen,
              testing::UnorderedElementsAre("OWN=" + odd, "BASH_FUNC_hello%%=" + function, "GIVEN=" + odd, "EMPTY="));
}

TEST(RunCommand, WrongUsageIsOneLineAndStartsNothing) {
  const std::map<std::vector<std::string>, std::string> mistakes = {
      {{"--", "./no-such-program"}, "program './no-such-program' not found"},
      {{"--", "no-such-program"}, "program 'no-such-program' not found"},
      {{"--"}, "no program given"},
      {{}, "no program given"},
      {{"true"}, "'true': not a flag of muster run"},
      {{"--workes", "2", "--", "true"}, "'--workes': not a flag of muster run"},
      {{"--ps", "two", "--", "true"}, "--ps 'two': accepted is a whole number"},
      {{"--ps", "-1", "--", "true"}, "--ps '-1'"},
      {{"--chief", "2", "--", "true"}, "--chief 2: accepted are 0 to 1"},
      {{"--workers", "0", "--", "true"}, "nobody would train"},
      {{"--env", "novalue", "--", "true"}, "--env novalue: there is no such variable here"},
      {{"--env", "=value", "--", "true"}, "--env =value: accepted are NAME=VALUE and NAME"},
      {{"--color", "red", "--", "true"}, "--color 'red': accepted are auto, always, never"},
      {{"--stop-grace", "soon", "--", "true"}, "--stop-grace 'soon': accepted is a number of seconds"},
      {{"--log-dir", "/dev/null/logs", "--", "true"}, "--log-dir: "},
  };
  for (const auto& [words, message] : mistakes) {
    MusterRun run(words);
    EXPECT_EQ(run.Wait(), 2) << message;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("muster run: "));
    EXPECT_THAT(run.err, HasSubstr(message));
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
  }
}

TEST(RunCommand, EachMistakeInAFileOfCommandsIsALine) {
  const ScratchFolder scratch;
  scratch.Write("commands.yml", "aquire: {argv: [./get]}\nstart: {argv: [./go, '{agent}']}\n");
  MusterRun run({"--on", "command", "--hosts_by", scratch / "commands.yml", "--", "true"});
  EXPECT_EQ(run.Wait(), 2);
  EXPECT_THAT(run.err, HasSubstr("/commands.yml:1: acquire: is missing; accepted: {argv: [PROGRAM, WORDS]"));
  EXPECT_THAT(run.err, HasSubstr("}\nmuster run: ")) << "the next one has a line of its own";
  EXPECT_THAT(run.err, HasSubstr("/commands.yml:1: aquire: there is no such command (nearest: acquire)"));
}

// What Slurm sets in the shell of a job of two nodes. --dry-run asks Slurm nothing.
const std::vector<std::pair<std::string, std::string>> kSlurmJob = {{"SLURM_JOB_ID", "17"},
                                                                    {"SLURM_JOB_NODELIST", "h[1-2]"}};

TEST(RunCommand, OnSlurmItSaysWhatAFolderThatNodesMayNotShareIsGoodFor) {
  const auto said = [](const std::string& model_dir) {
    MusterRun run({"--on", "slurm", "--ps", "2", "--model_dir", model_dir, "--dry-run", "--", "true"},
                  {.environment = kSlurmJob});
    EXPECT_EQ(run.Wait(), 0) << run.err;
    return run.err;
  };
  EXPECT_THAT(said("/tmp/mm"), HasSubstr("muster run: unless h2 shares /tmp/mm with h1, worker:0 alone writes to h1"));
  EXPECT_THAT(said("model"), Not(HasSubstr("unless"))) << "below the folder in which all tasks start";
}

TEST(RunCommand, EachTaskOfAStepOfSrunWouldStartARunOfItsOwn) {
  auto environment = kSlurmJob;
  environment.insert(environment.end(), {{"SLURM_STEP_ID", "0"},
                                         {"SLURM_STEP_NUM_TASKS", "2"},
                                         {"SLURM_STEP_NODELIST", "h[1-2]"},
                                         {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                         {"SLURM_PROCID", "0"}});
  MusterRun on_all_nodes({"--on", "slurm", "--dry-run", "--", "true"}, {.environment = environment});
  EXPECT_EQ(on_all_nodes.Wait(), 2);
  EXPECT_EQ(on_all_nodes.out, "");
  EXPECT_THAT(on_all_nodes.err, HasSubstr("this is task 0 of 2 of Slurm's step 17.0, and each of them would start a "
                                          "whole run on all nodes; accepted: without srun, or with srun -n 1"));
  // It may be meant, for runs that have nothing to do with each other.
  MusterRun here({"--ps", "0", "--", "true"}, {.environment = environment});
  EXPECT_EQ(here.Wait(), 0) << here.err;
  EXPECT_THAT(here.err,
              HasSubstr("this is task 0 of 2 of Slurm's step 17.0, and each of them starts a run of its own"));
}

TEST(RunCommand, LogDirHasAFileForEachTask) {
  const ScratchFolder scratch;
  MusterRun run({"--ps", "1", "--workers", "1", "--log-dir", scratch / "logs"}, "echo $task; echo bad >&2");
  EXPECT_EQ(run.Wait(), 0);
  for (const std::string task : {"ps", "worker"}) {
    const auto log = scratch.Read("logs/" + task + "-0.log");
    EXPECT_THAT(std::vector<std::string>(absl::StrSplit(log, '\n')),
                testing::UnorderedElementsAre(task + ":0", "bad", ""));
  }
}

}  // namespace
}  // namespace muster::run_command_test
