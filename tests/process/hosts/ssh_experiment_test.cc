// Experiments on hosts, beyond what every engine has to do (tests/process/experiment): real training over hosts that
// see nothing of each other's disks, and what is said of hosts that can't be used.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/engines.h"

namespace muster::ssh_experiment_test {
namespace {

using nlohmann::json;
using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::Not,
    ::testing::StartsWith;

class SshExperiment : public OnEveryEngine {
 protected:
  // Writes an experiment of the example train_and_evaluate.
  void WriteTraining(const std::string& tasks, const std::string& more = "") {
    Write("muster.yml",
          absl::StrCat("project: digits\ntrain:\n  framework: muster\n  muster: {distributed: ", tasks,
                       "}\n  parameters: {steps: 100}\n", more, "  run: >-\n    '", BinFolder(),
                       "/train_and_evaluate' --csv='", SourceFolder(),
                       "/examples/data/digits.csv' --steps={{ steps }} --save_steps=50 ", "--model_dir=$OUTPUT_DIR\n"));
  }

  // Returns how many processes of the host have this command line.
  static int64_t CountOf(const std::string& host, const std::string& words) {
    const auto running = hosts().ProcessesOf(host);
    return std::count_if(running.begin(), running.end(),
                         [&](const auto& one) { return absl::StripAsciiWhitespace(one.words) == words; });
  }
};

INSTANTIATE_TEST_SUITE_P(, SshExperiment, ::testing::Values("ssh"), EngineName);

// The checkpoint is written on the master's host and comes here; the next attempt finds it there.
TEST_P(SshExperiment, TrainingGoesOnFromTheCheckpointOfAHostThatSeesNothingOfHere) {
  RunOn("h1,h2", "placement: {ps: h2, master: h1}\n");
  WriteTraining("{ps: 1, worker: 2}");
  const std::string shown = Out({"train"});
  EXPECT_THAT(LinesOf(shown, "1.master"), Contains(StartsWith("Test accuracy ")));
  EXPECT_THAT(shown, ContainsRegex("h1, h2 don't see .*: tasks there have the OUTPUT_DIR /run/home/.muster/output/"));
  EXPECT_LT(shown.find("h1, h2 don't see "), shown.find("--> RUNNING")) << "before anything starts";
  EXPECT_THAT(shown, ContainsRegex("output from h1: [0-9]+ new files"));
  const json tasks = TasksOf("1");
  EXPECT_EQ(tasks["1.ps.1"]["host"], "h2");
  EXPECT_EQ(tasks["1.master"]["host"], "h1");
  EXPECT_THAT(Out({"status", "1"}), ContainsRegex("HOST.*\n1.master +FINISHED +[^ ]+ +h1 "));
  const std::string output = Json({"show", "1"})["output_dir"].get<std::string>();
  EXPECT_TRUE(std::filesystem::exists(output + "/model.ckpt-100.index") ||
              std::filesystem::exists(output + "/checkpoint"))
      << output;
  const std::string again = Out({"train", "--experiment", "1", "--param", "steps=150"});
  EXPECT_THAT(again, ContainsRegex("Restoring parameters from /run/home/.muster/output/[^/]+/1/model.ckpt-10"));
}

// Nothing newer is replaced by something older, wherever the next attempt runs.
TEST_P(SshExperiment, AnotherAttemptRunsWhereItFindsWhatTheLastOneHasWritten) {
  RunOn("h1");
  WriteExperiment("run: echo attempt >> $OUTPUT_DIR/log; wc -l < $OUTPUT_DIR/log");
  const auto attempt = [&](const std::vector<std::string>& flags) {
    const Said said = Muster(Joined({"train", "--experiment", "1"}, flags));
    const std::vector<std::string> lines = LinesOf(said.out, "1.master");
    return said.exit_code == 0 && lines.size() == 3 ? lines[1] : said.err;
  };
  const std::vector<std::string> on_h2 = {"--hosts", "h2", "--ssh_config", hosts().ssh_config()};
  Out({"train"});
  EXPECT_EQ(attempt({}), "2");
  const json before = TasksOf("1");
  EXPECT_THAT(attempt(on_h2), AllOf(HasSubstr("h2 lacks what earlier attempts have written, and would begin anew"),
                                    HasSubstr("it is FINISHED as before")));
  EXPECT_EQ(StateOf("1"), "FINISHED") << "that has changed nothing";
  EXPECT_EQ(TasksOf("1"), before);
  EXPECT_EQ(attempt({}), "3");
  EXPECT_EQ(attempt({"--on", "local"}), "4") << "it came here";
  EXPECT_THAT(attempt({}), HasSubstr("h1 lacks what earlier attempts have written")) << "the newest is here";
  EXPECT_EQ(attempt({"--on", "local"}), "5");
}

// What was written never came here, so neither this machine nor another host has it.
TEST_P(SshExperiment, NoAttemptBeginsAnewWhereTheLastOnesOutputIsOnAHostAlone) {
  RunOn("h1");
  WriteExperiment("run: echo attempt >> $OUTPUT_DIR/log; echo written; sleep 1000");
  const auto train = StartMuster({"train"});
  train->WaitForOut("written");
  EXPECT_THAT(Out({"show", "1"}), ContainsRegex("output now +on h1 in /run/home/.muster/output/.* until the end\n"));
  EXPECT_EQ(Muster({"kill", "--now", "1"}).exit_code, 0);
  train->Wait();
  EXPECT_THAT(Out({"show", "1"}), ContainsRegex("output now +on h1 in .*: it never came here\n"));
  // The kill comes before the output is fetched, or meanwhile.
  EXPECT_THAT(train->out,
              ContainsRegex("the output on h1 (stays there|couldn't be brought here).* in /run/home/.muster/output/"));
  const std::vector<std::string> on_h2 = {"--hosts", "h2", "--ssh_config", hosts().ssh_config()};
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--on", "local"}, on_h2}) {
    const Said said = Muster(Joined({"train", "--experiment", "1"}, flags));
    EXPECT_NE(said.exit_code, 0);
    EXPECT_THAT(said.err,
                HasSubstr("never came here, and this one would begin anew: it is on h1 in /run/home/.muster"));
    EXPECT_EQ(StateOf("1"), "KILLED") << "as before";
  }
}

TEST_P(SshExperiment, AnEvaluatorThatSeesNoCheckpointsIsNamedBeforeItStarts) {
  RunOn("h1,h2", "placement: {master: h1, evaluator: h2}\n");
  const auto train = [this](const std::string& more) {
    Write("muster.yml",
          "project: toy\ntrain:\n  framework: tensorflow\n  tensorflow: {distributed: {worker: 1, evaluator: true}}\n" +
              more + "  run: echo done\n");
    return Out({"train", "--no-venv"});
  };
  const std::string shown = train("");
  const size_t said = shown.find(
      "the evaluator on h2 finds no checkpoint unless it shares this folder with h1, where "
      "they are written; placement: {evaluator: h1} puts it there");
  ASSERT_NE(said, std::string::npos) << shown;
  EXPECT_LT(said, shown.find("--> RUNNING"));
  EXPECT_THAT(train("  output: " + Aside("out") + "\n"), Not(HasSubstr("finds no checkpoint"))) << "both see it";
}

// Each role on a host of its own, with an OUTPUT_DIR that all of them see.
TEST_P(SshExperiment, DigitsAreLearntWithEachRoleOnItsOwnHost) {
  RunOn("h1,h2,h3,h4", "placement: {ps: h1, master: h2, worker: h3, evaluator: h4}\n");
  WriteTraining("{ps: 1, worker: 3, evaluator: true}", absl::StrCat("  output: ", Aside("out"), "\n"));
  const std::string shown = Out({"train", "--param", "steps=1500"});
  EXPECT_THAT(shown, Not(HasSubstr("don't see " + Aside("out"))));
  double accuracy = 0;
  for (const std::string& line : LinesOf(shown, "1.evaluator"))
    if (line.starts_with("Test accuracy ")) accuracy = std::stod(line.substr(14));
  EXPECT_GE(accuracy, 0.98) << shown;
  EXPECT_EQ(TasksOf("1")["1.worker.2"]["host"], "h3");
  EXPECT_EQ(TasksOf("1")["1.evaluator"]["host"], "h4");
}

TEST_P(SshExperiment, OutputThatCannotBeBroughtHereIsNamedWithItsPlace) {
  RunOn("h1");
  WriteExperiment("run: rm -r $OUTPUT_DIR && echo this is no folder > $OUTPUT_DIR");
  EXPECT_THAT(
      Muster({"train"}).out,
      ContainsRegex("the output on h1 couldn't be brought here \\([^\n]+\\); it is there in /run/home/.muster/"));
  Process clear(hosts().On("h1", {"rm", "-r", "/run/home/.muster/output"}));
  EXPECT_EQ(clear.Wait(), 0) << clear.err;
}

TEST_P(SshExperiment, HostsThatCantBeUsedAreNamedBeforeAnythingStarts) {
  RunOn("h1,nowhere,elsewhere");
  WriteExperiment("install: touch " + Aside("installed") + "\nrun: echo never");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 2) << said.err;
  EXPECT_THAT(said.out, AllOf(ContainsRegex("1 +\\| nowhere .*name"), ContainsRegex("1 +\\| elsewhere .*name")));
  EXPECT_THAT(said.err, AllOf(HasSubstr("experiment 1: FAILED"), HasSubstr(": nothing was started; its log says why"),
                              Not(HasSubstr("elsewhere "))));
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(), HasSubstr("; elsewhere "));
  EXPECT_FALSE(std::filesystem::exists(Aside("installed")));
}

TEST_P(SshExperiment, FlagsForHostsWinOverTheFile) {
  RunOn("nowhere", "placement: {master: nowhere}\n");
  WriteExperiment("run: echo on $(uname -n)");
  const std::string there = Out({"train", "--hosts", "h3", "--ssh_config", hosts().ssh_config()});
  EXPECT_THAT(LinesOf(there, "1.master"), Contains("on h3"));
  EXPECT_THAT(LinesOf(Out({"rerun", "1"}), "2.master"), Contains("on h3")) << "as it was";
  const std::string here = Out({"train", "--on", "local"});
  EXPECT_THAT(LinesOf(here, "3.master"), Not(Contains("on h3")));
  const Said dry = Muster({"train", "--dry-run", "--hosts", "h3"});
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_THAT(dry.out,
              AllOf(ContainsRegex("\n  on +ssh +--hosts\n"), ContainsRegex("\n  hosts +h3 +--hosts, not the file's\n"),
                    ContainsRegex("\n  placement +none +--hosts, not the file's\n")));
  EXPECT_THAT(dry.out, ContainsRegex("code for each host: 1 file, [0-9]+ bytes, [^\n]*\n  [0-9]+ bytes  muster.yml\n"));
  EXPECT_THAT(Mistake({"train", "--on", "shh"}), HasSubstr("(nearest: ssh)"));
}

// The login on h1 sets the GPUs that its tasks may have. They keep these names, and a host that has none is named with
// the setting.
TEST_P(SshExperiment, GpusAreThoseOfTheHostsOwnPool) {
  const auto at_login = [](const std::string& variables) {
    Process set(hosts().On(
        "h1",
        {"sh", "-c", "mkdir -p /run/home/.ssh && cat > /run/home/.ssh/environment <<'end'\n" + variables + "\nend\n"}));
    EXPECT_EQ(set.Wait(), 0) << set.err;
  };
  RunOn("[h1 gpus=2]");
  Write("muster.yml",
        "project: toy\ntrain:\n  framework: tensorflow\n  tensorflow:\n    distributed:\n      ps: 1\n"
        "      worker: {count: 2, resources: {gpus: 1}}\n      evaluator: true\n"
        "  run: echo sees \"[$CUDA_VISIBLE_DEVICES]\"\n");
  at_login("CUDA_VISIBLE_DEVICES=GPU-a,GPU-b");
  const Said some = Muster({"train", "--no-venv"});
  at_login("CUDA_VISIBLE_DEVICES=");
  const Said none = Muster({"train", "--no-venv"});
  at_login("");
  EXPECT_EQ(some.exit_code, 0) << some.out << some.err;
  for (const auto& [task, gpus] :
       {std::pair("1.ps.1", ""), {"1.master", "GPU-a"}, {"1.worker.1", "GPU-b"}, {"1.evaluator", ""}})
    EXPECT_THAT(LinesOf(some.out, task), Contains(absl::StrCat("sees [", gpus, "]"))) << some.out;
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(none.err,
              HasSubstr("master could not be started: on h1: the task wants a GPU that isn't there: the host's "
                        "own CUDA_VISIBLE_DEVICES is '', which has 0"));
  for (const std::string task : {"2.master", "2.worker.1"})
    EXPECT_THAT(LinesOf(none.out, task), Not(Contains(HasSubstr("sees ")))) << none.out;
}

TEST_P(SshExperiment, DataInTheFolderOfTheCodeIsNotSent) {
  WriteExperiment("run: wc -c < data/all");
  Write("data/all", std::string(2'000'000, 'x'));
  const std::string refused = Mistake({"train", "--code_limit", "1MB"});
  EXPECT_THAT(refused, HasSubstr("the code for each host is 2.0 MB, most of it in data/all (2.0 MB)"));
  EXPECT_THAT(refused,
              HasSubstr("accepted is 1 MB: name in .musterignore what hosts don't need, or raise --code_limit"));
  EXPECT_THAT(LinesOf(Out({"train"}), "1.master"), Contains("2000000"));
}

// The supervisor starts the tasks again on a new agent, in the copy of the code that the dead one has left: one whose
// guard was killed, too, and one that was told to end.
TEST_P(SshExperiment, TheTasksOfADeadAgentFindTheirCodeAgain) {
  const ScriptGate gate(Aside("gate"));
  RunOn("h1");
  Write("data", "the code is here\n");
  WriteExperiment("run: cat data; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  size_t lines_so_far = 2;
  for (const int number : {SIGKILL, SIGTERM}) {
    AwaitLines(*train, "1.master", lines_so_far);
    for (const SimulatedHosts::Running& running : hosts().ProcessesOf("h1"))
      if (absl::StartsWith(running.words, "run-guard ") || absl::StrContains(running.words, " --serve "))
        kill(running.pid, number);
    lines_so_far += 2;
  }
  AwaitLines(*train, "1.master", lines_so_far);
  gate.LetThrough(1);
  EXPECT_EQ(train->Wait(), 0) << train->err;
  const std::vector<std::string> lines = LinesOf(train->out, "1.master");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "the code is here"), 3) << train->out;
}

// The agents measure, the supervisor writes it down while somebody watches, and any command reads it.
TEST_P(SshExperiment, MonitorShowsWhatTasksOnHostsUse) {
  WriteExperiment("torchrun: {workers: 2}\nrun: while :; do :; done");
  const auto train = StartMuster({"train"});
  for (const std::string task : {"1.worker.1", "1.worker.2"}) AwaitLines(*train, task, 1);
  // Agents say each second what tasks use.
  const std::string usage = home() + "/experiments/1/usage.json";
  const auto renewed = [this] { return json::parse(Read("experiments/1/state.json"))["renewed_us"].get<int64_t>(); };
  const absl::Time give_up = absl::Now() + absl::Minutes(1);
  for (const int64_t begin = renewed(); renewed() < begin + 4'000'000 && absl::Now() < give_up;) Out({"status", "1"});
  EXPECT_FALSE(std::filesystem::exists(usage)) << "nobody watches";
  const auto monitor = StartMuster({"monitor", "1", "--interval", "0.2", "--json"});
  for (bool all = false; !all && !HasFailure();) {
    monitor->ReadSomeOut();
    const size_t end = monitor->out.rfind('\n');
    if (end == std::string::npos) continue;
    const size_t before = end == 0 ? std::string::npos : monitor->out.rfind('\n', end - 1);
    const json table = json::parse(monitor->out.substr(before == std::string::npos ? 0 : before + 1, end - before));
    int busy = 0;
    for (const json& task : table["tasks"])
      if (task["cpu_percent"].is_number() && task["cpu_percent"] > 10 && task["mem_bytes"] > 0) ++busy;
    all = busy >= 2;
  }
  EXPECT_TRUE(std::filesystem::exists(usage));
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 0);
  EXPECT_EQ(monitor->Wait(), 0) << monitor->err;
  EXPECT_EQ(train->Wait(), 130);
  EXPECT_FALSE(std::filesystem::exists(usage));
}

// Two hosts with two processes each, as torchrun would start them: they find each other and sum their ranks.
constexpr char kSumOfRanks[] = R"(
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
sum = torch.tensor(float(dist.get_rank()))
dist.all_reduce(sum)
print(f"{os.uname().nodename}: local rank {os.environ['LOCAL_RANK']}, sum {sum.item()}", flush=True)
dist.destroy_process_group()
)";

TEST_P(SshExperiment, AScriptOfTorchDistributedRunsOverHosts) {
  const std::string python = SourceFolder() + "/.venv/bin/python";
  if (!std::filesystem::exists(python)) GTEST_SKIP() << NoTestBecause("no .venv; ./dev setup makes it");
  Write("sum.py", kSumOfRanks);
  WriteExperiment("torchrun: {workers: 2, processes: 2}\nrun: " + python + " sum.py");
  const std::string shown = Out({"train"});
  const std::vector<std::string> lines = {"h1: local rank 0, sum 6.0", "h1: local rank 1, sum 6.0",
                                          "h2: local rank 0, sum 6.0", "h2: local rank 1, sum 6.0"};
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_THAT(LinesOf(shown, absl::StrCat("1.worker.", i + 1)), Contains(lines[i])) << shown;
}

// Another user of a host sees and ends nothing of this one's job, and works beside it.
TEST_P(SshExperiment, UsersOnTheSameHostLeaveEachOtherAlone) {
  RunOn("h1");
  WriteExperiment("run: echo begun as $(id -un); sleep 1000");
  const std::vector<std::string> as_guest = {"--hosts", "guest@h1", "--ssh_config", hosts().ssh_config()};
  const std::vector<std::string> as_root = {"--hosts", "h1", "--ssh_config", hosts().ssh_config()};
  const auto first = StartMuster({"train"});
  first->WaitForOut("begun as root");
  const auto second = StartMuster(Joined({"train"}, as_guest));
  second->WaitForOut("begun as guest");
  for (const auto& user : {as_guest, as_root}) {
    const std::string jobs = Out(Joined({"gc"}, user));
    EXPECT_EQ(std::count(jobs.begin(), jobs.end(), '\n'), 1) << "its own, which runs: " << jobs;
    EXPECT_THAT(jobs, HasSubstr(" runs\n"));
  }
  Process look(hosts().On("h1", {"setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", "ls", "/tmp/muster-0"}));
  EXPECT_NE(look.Wait(), 0) << look.out;
  EXPECT_EQ(Muster({"kill", "2"}).exit_code, 0);
  EXPECT_EQ(second->Wait(), 130) << second->err;
  EXPECT_EQ(StateOf("1"), "RUNNING");
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 0);
  EXPECT_EQ(first->Wait(), 130) << first->err;
}

// Two experiments of one home, and another user's home, on the same hosts: each ends its own.
TEST_P(SshExperiment, JobsOnTheSameHostsLeaveEachOtherAlone) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: echo begun; read line < " + gate.path() + "; echo done");
  const auto first = StartMuster({"train"});
  const auto second = StartMuster({"train"});
  first->WaitForOut("begun");
  second->WaitForOut("begun");
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 0);
  EXPECT_EQ(StateOf("2"), "RUNNING");
  gate.LetThrough();
  const int codes = std::min(first->Wait(), second->Wait());
  EXPECT_EQ(codes, 0) << first->err << second->err;
  EXPECT_EQ(StateOf("1"), "KILLED");
  EXPECT_EQ(StateOf("2"), "FINISHED");
}

// The host's disk is full: its task fails with that as its own words, and what is there comes here all the same.
TEST_P(SshExperiment, AFullDiskOfAHostIsTheTasksOwnFailure) {
  RunOn("h1");
  Process fill(hosts().On("h1", {"sh", "-c",
                                 "mkdir -p /run/home/.muster/output && "
                                 "mount -t tmpfs -o size=64k none /run/home/.muster/output"}));
  ASSERT_EQ(fill.Wait(), 0) << fill.err;
  WriteExperiment("run: echo kept > $OUTPUT_DIR/small && head -c 1000000 /dev/zero > $OUTPUT_DIR/large");
  const Said said = Muster({"train"});
  EXPECT_NE(said.exit_code, 0);
  EXPECT_THAT(said.out, HasSubstr("No space left on device"));
  const std::string output = Json({"show", "1"})["output_dir"].get<std::string>();
  EXPECT_EQ(Read(output + "/small"), "kept\n");
  Process clear(hosts().On("h1", {"umount", "/run/home/.muster/output"}));
  EXPECT_EQ(clear.Wait(), 0) << clear.err;
}

// The link is cut for less than the grace: nothing is ended, and no line is lost.
TEST_P(SshExperiment, AHostThatIsUnpluggedAndBackCostsNothing) {
  constexpr size_t kLines = 20000;
  const ScriptGate gate(Aside("gate"));
  RunOn("h2");
  WriteExperiment(
      absl::StrCat("run: seq 1 ", kLines, "; read line < ", gate.path(), "; seq ", kLines + 1, " ", 2 * kLines));
  const auto train = StartMuster({"train"});
  train->WaitForOut(absl::StrCat(" ", kLines, "\n"));
  hosts().Cut("h2");
  gate.LetThrough();
  train->WaitForOut("h2 hasn't been heard for 3s");
  hosts().Heal("h2");
  EXPECT_EQ(train->Wait(), 0) << train->err;
  const std::vector<std::string> lines = LinesOf(train->out, "1.master");
  ASSERT_EQ(lines.size(), 2 * kLines + 2) << train->err;
  for (size_t i = 1; i <= 2 * kLines; ++i) ASSERT_EQ(lines[i], absl::StrCat(i));
  EXPECT_EQ(TasksOf("1")["1.master"]["restarts"], 0);
}

// Code that takes a while: bytes that no copy can do without.
std::string MuchCode() {
  std::string bytes;
  bytes.resize(100'000'000);
  uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

TEST_P(SshExperiment, ARunThatIsKilledWhileCodeIsCopiedLeavesNothing) {
  Write("data", MuchCode());
  WriteExperiment("run: echo never");
  const auto train = StartMuster({"train"});
  train->WaitForOut("copying up to 100.0 MB of code to each host");
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 0);
  EXPECT_EQ(train->Wait(), 130);
  EXPECT_THAT(train->out, Not(HasSubstr("never")));
  Process find(hosts().On("h1", {"find", "/run/home/.cache/muster/work", "-mindepth", "2", "-type", "d"}));
  find.Wait();
  EXPECT_EQ(find.out, "");
}

TEST_P(SshExperiment, AHostThatIsLostWhileCodeIsCopiedIsNamed) {
  RunOn("h1,h2");
  Write("data", MuchCode());
  WriteExperiment("torchrun: {workers: 2}\nrun: echo never");
  const auto train = StartMuster({"train"});
  train->WaitForOut("copying up to 100.0 MB of code to each host");
  hosts().Cut("h2");
  EXPECT_EQ(train->Wait(), 2) << train->err;
  EXPECT_THAT(train->out + train->err, ContainsRegex("h2(: | is lost: )"));
  EXPECT_THAT(train->out, Not(HasSubstr("never")));
  hosts().Heal("h2");
}

// The agent and its guard are killed at once under a task whose child has a session of its own and no variables.
TEST_P(SshExperiment, GcOfHostsEndsWhatDeadJobsHaveLeft) {
  RunOn("h1");
  const std::vector<std::string> gc = {"gc", "--hosts", "h1,h2", "--ssh_config", hosts().ssh_config()};
  Out(gc);  // an agent that ended by its grace leaves its log
  WriteExperiment("restart: {policy: never}\nrun: env -i setsid sleep 1234 & echo begun; sleep 1000");
  const auto train = StartMuster({"train"});
  AwaitLines(*train, "1.master", 2);
  const std::string said = Out(gc);
  EXPECT_THAT(said, AllOf(ContainsRegex("h1: job [0-9a-f]+ runs\n"), HasSubstr("h2: nothing is left there\n")));
  const std::string run_id = said.substr(std::min<size_t>(8, said.size()), 16);
  KillSupervisor("1");
  // Neither sees the other's end.
  for (const int signal : {SIGSTOP, SIGKILL})
    for (const char* words : {"run-guard", " --serve "})
      for (const SimulatedHosts::Running& running : hosts().ProcessesOf("h1"))
        if (running.words.find(words) != std::string::npos && running.words.find(run_id) != std::string::npos)
          kill(running.pid, signal);
  train->Wait();
  EXPECT_THAT(Out({"gc", "--hosts", "h1", "--ssh_config", hosts().ssh_config(), "--dry-run"}),
              HasSubstr("h1: would end what is left of job " + run_id));
  EXPECT_EQ(CountOf("h1", "sleep 1234"), 1) << "nobody is left to end it";
  EXPECT_THAT(Out(gc), ContainsRegex("h1: job " + run_id + ": ended [0-9]+ process"));
  EXPECT_EQ(CountOf("h1", "sleep 1234"), 0);
  EXPECT_THAT(Out(gc), HasSubstr("h1: nothing is left there\n"));
}

}  // namespace
}  // namespace muster::ssh_experiment_test
