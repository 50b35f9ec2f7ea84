// `muster train` and its companions as a user runs them: the real command and its supervisors, with shell and Python
// scripts as tasks. The tests wait for events (a line, a FIFO, a lock), never for time.
#include <gmock/gmock.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/built_at.h"
#include "muster/launch/task/resources.h"
#include "muster/launch/task_log/log_watch.h"
#include "muster/launch/testing/tensorflow_file.h"
#include "tests/process/testing/engines.h"

namespace muster::experiment_command_test {
namespace {

using nlohmann::json;
using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::ElementsAre, ::testing::HasSubstr,
    ::testing::IsEmpty, ::testing::Not, ::testing::StartsWith;

int CountOf(const std::string& words, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

// What doesn't depend on where tasks run, or on this shell's variables.
class ExperimentCommandHere : public ExperimentsTest {};

class ExperimentCommand : public OnEveryEngine {
 protected:
  size_t LinesIn(const std::string& path) const {
    const std::string text = Read(path);
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  // Waits until a file of a task's log is there.
  void AwaitLogFile(const std::string& folder, const std::string& name) const {
    LogWatch watch;
    const std::string file = absl::StrCat(folder, "/", name);
    for (pollfd wake = {watch.fd(), POLLIN, 0};;) {
      watch.Add(folder, 0, /*files=*/true);
      if (std::filesystem::exists(file)) return;
      ASSERT_EQ(poll(&wake, 1, 60'000), 1) << folder;
      std::vector<size_t> keys;
      watch.Changed(keys);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(, ExperimentCommand, EveryEngine(), EngineName);

// Prints what it sees; a ps never ends, like one that calls server.join().
constexpr char kTrainModel[] = R"(import json, os, signal, sys
config = json.loads(os.environ["TF_CONFIG"])
print(json.dumps({"arguments": sys.argv[1:], "config": config, "depth": os.environ["DEPTH"],
                  "step": os.environ["STEP_SIZE"], "output": os.environ["OUTPUT_DIR"],
                  "project": os.environ["PROJECT"], "experiment": os.environ["EXPERIMENT_ID"]}))
if config["task"]["type"] == "ps":
    while True:
        signal.pause()
)";

TEST_F(ExperimentCommandHere, TheFileOfTheRequirementsRunsAsItIs) {
  std::string file = kTensorflowFile;
  // If the machine is smaller than that, use what it has.
  const Machine machine = ThisMachine();
  if (machine.mem_bytes < int64_t{8192} << 20)
    file = absl::StrReplaceAll(file, {{"8192", absl::StrCat(machine.mem_bytes >> 20)}});
  if (machine.cores < 2) file = absl::StrReplaceAll(file, {{"cpus: 2", "cpus: 1"}});
  Write("muster.yml", file);
  Write("learn.py", kTrainModel);
  environment_ = {absl::StrCat("PATH=", WriteProgram("python", "exec python3 \"$@\""), ":", getenv("PATH"))};

  const std::string shown = Out({"train", "--no-gpus", "--no-venv", "--param", "depth=4", "--param", "step-size=0.1"});
  EXPECT_THAT(shown, ContainsRegex("^Syncing project \\([0-9.]+ K?M?B?(bytes)?, 2 files\\)\\.\\.\\.done\n"));
  EXPECT_THAT(shown, ContainsRegex("^[^\n]*\n1 +\\| \\[[0-9-]+T[0-9:]+Z\\] --> CREATED\n")) << "it comes first";
  EXPECT_THAT(shown, ContainsRegex("\n1\\.ps\\.2 +\\| \\[[0-9-]+T[0-9:]+Z\\] --> RUNNING\n"));
  std::set<size_t> bars;
  const std::vector<std::string> lines = absl::StrSplit(shown, '\n', absl::SkipEmpty());
  for (size_t i = 1; i < lines.size(); ++i) bars.insert(lines[i].find(" | "));
  EXPECT_EQ(bars.size(), 1) << "the names are padded to one width:\n" << shown;

  std::set<std::string> outputs, addresses;
  const std::vector<std::pair<std::string, json>> tasks = {{"1.master", {{"type", "master"}, {"index", 0}}},
                                                           {"1.worker.1", {{"type", "worker"}, {"index", 0}}},
                                                           {"1.worker.2", {{"type", "worker"}, {"index", 1}}},
                                                           {"1.ps.1", {{"type", "ps"}, {"index", 0}}},
                                                           {"1.ps.2", {{"type", "ps"}, {"index", 1}}}};
  for (const auto& [name, who] : tasks) {
    EXPECT_THAT(StatesOf(shown, name), ElementsAre("RUNNING", "FINISHED"));
    const std::vector<std::string> said = LinesOf(shown, name);
    const auto line = std::find_if(said.begin(), said.end(), [](const auto& text) { return text.starts_with("{"); });
    ASSERT_NE(line, said.end()) << name << "\n" << shown;
    const json seen = json::parse(*line);
    EXPECT_EQ(seen["config"]["task"], who);
    EXPECT_EQ(seen["config"]["cluster"]["ps"].size(), 2);
    EXPECT_EQ(seen["config"]["cluster"]["worker"].size(), 2);
    EXPECT_EQ(seen["config"]["cluster"]["master"].size(), 1);
    for (const auto& job : seen["config"]["cluster"]) addresses.insert(job.begin(), job.end());
    EXPECT_EQ(seen["arguments"], json({"--depth", "4", "--step-size", "0.1", "--data", "/data/kettles"}));
    EXPECT_EQ(seen["depth"], "4");
    EXPECT_EQ(seen["step"], "0.1");
    EXPECT_EQ(seen["project"], "tea-timer");
    EXPECT_EQ(seen["experiment"], "1");
    outputs.insert(seen["output"].get<std::string>());
  }
  EXPECT_EQ(outputs.size(), 1) << "all share one";
  EXPECT_EQ(addresses.size(), 5);
  EXPECT_EQ(StateOf("1"), "FINISHED");
}

TEST_F(ExperimentCommandHere, ADryRunShowsWhatWasUnderstoodAndWritesNothing) {
  Write("riseml.yml", "project: toy\ntrain:\n  run: >-\n    echo one\n      --layers {{ layers }}\n");
  const Said said = Muster({"train", "--dry-run", "--param", "layers=4"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("  master: no limits\n    echo one --layers 4\n"));
  const Said without = Muster({"train", "--dry-run"});
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.out, HasSubstr("    echo one --layers {{ layers }}\n"));
  EXPECT_THAT(without.err, HasSubstr("muster train: it runs here with: muster train --param layers=…\n"));
  EXPECT_FALSE(std::filesystem::exists(home())) << "nothing is written";
  EXPECT_THAT(Mistake({"train", "--dry-run", "--experiment", "1"}), HasSubstr("--dry-run: accepted without"));
  EXPECT_THAT(LinesOf(Out({"train", "--param", "layers=4"}), "1.master"), Contains("one --layers 4"));
}

TEST_F(ExperimentCommandHere, AnExperimentOfAnotherFileIsToldTheCommandWithThatFile) {
  Write("muster.yml", "project: toy\ntrain: {run: 'true'}\n");
  Write("tl.yml", "project: tl\ntrain: {run: 'true'}\n");
  EXPECT_EQ(Muster({"train", "-f", "tl.yml"}).exit_code, 0);
  EXPECT_THAT(Mistake({"train", "--experiment", "1"}),
              HasSubstr("it belongs to project tl, but muster.yml here to project toy; with its own file: muster train "
                        "-f tl.yml --experiment 1"));
}

TEST_P(ExperimentCommand, ATaskFindsItsEnvironmentAndItsProject) {
  Write("part/data.txt", "some\n");
  WriteExperiment(
      "env: {COLOUR: blue}\nparameters: {num-layers: 4, text: \"it's a b\"}\n"
      "run:\n- cat part/data.txt\n- test -d $OUTPUT_DIR && echo $EXPERIMENT_ID $JOB_NAME $PROJECT $COLOUR $NUM_LAYERS\n"
      "- printf '<%s>\\n' {{ text }} --layers={{num-layers}}");
  const std::string shown = Out({"train"});
  EXPECT_THAT(LinesOf(shown, "1.master"),
              ElementsAre("--> RUNNING", "some", "1 toy-1 toy blue 4", "<it's a b>", "<--layers=4>", "--> FINISHED"));
}

TEST_P(ExperimentCommand, ValuesOfVariablesArriveAsTheyAre) {
  environment_ = {"OWN=of\nthe shell"};
  WriteExperiment(R"yml(env: {ODD: "a\nb \"c\" 'd' %e %% $HOME `f` \\ \t=", EMPTY: ""}
run: cp /proc/self/environ $OUTPUT_DIR/environ)yml");
  Out({"train"});
  const std::vector<std::string> seen = absl::StrSplit(Read("experiments/1/output/environ"), '\0');
  for (const char* variable : {"ODD=a\nb \"c\" 'd' %e %% $HOME `f` \\ \t=", "EMPTY="})
    EXPECT_THAT(seen, Contains(variable));
  EXPECT_EQ(testing::Value(seen, Contains("OWN=of\nthe shell")), takes_shell())
      << "nothing of a shell goes to hosts, and sbatch takes all of it";
}

TEST_P(ExperimentCommand, AllThatATaskHasWrittenIsShownBeforeItsEnd) {
  Write("much.py",
        "import os\n"
        "for i in range(100): os.write(1, b''.join(b'%07d %092d\\n' % (1000 * i + k, 0) for k in range(1000)))\n"
        "os._exit(1)\n");
  WriteExperiment("run: exec python3 much.py");
  const Said much = Muster({"train"});
  EXPECT_EQ(much.exit_code, 1);
  const std::vector<std::string> lines = LinesOf(much.out, "1.master");
  ASSERT_EQ(lines.size(), 100002);
  EXPECT_THAT(lines[100000], StartsWith("0099999 "));
  EXPECT_EQ(lines[100001], "--> FAILED");
  WriteExperiment("restart: {policy: never}\nrun: printf 'no line end'; kill -9 $$");
  EXPECT_THAT(LinesOf(Muster({"train"}).out, "2.master"), ElementsAre("--> RUNNING", "no line end", "--> FAILED"));
}

TEST_P(ExperimentCommand, AProgressBarIsSeenAsItMovesAndLeavesOneLineInTheLog) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: printf '\\r  1%%'; printf '\\r 50%%'; echo half; read line < " + gate.path() +
                  "; printf '\\r100%%\\n' >&2");
  const auto train = StartMuster({"train"});
  train->WaitForOut("50%half");
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 0) << train->err;
  EXPECT_THAT(LinesOf(train->out, "1.master"), ElementsAre("--> RUNNING", " 50%half", "100%", "--> FINISHED"));
  WriteExperiment("run: printf '\\r 42%%'; read line < " + gate.path() + "; printf '\\r100%%\\n'");
  const auto bar = StartMuster({"train"});
  bar->WaitForOut("RUNNING");
  const std::string folder = home() + "/experiments/2/logs/master";
  AwaitLogFile(folder, "live");
  EXPECT_THAT(LinesOf(Out({"logs", "2"}), "2.master"), Contains(" 42%"));
  gate.LetThrough();
  EXPECT_EQ(bar->Wait(), 0) << bar->err;
  EXPECT_THAT(LinesOf(bar->out, "2.master"), ElementsAre("--> RUNNING", "100%", "--> FINISHED")) << "not a terminal";
  EXPECT_EQ(Read(folder + "/live"), "");
}

TEST_P(ExperimentCommand, ARunStopsAtItsFirstFailureWhoseCodeIsTheCommands) {
  WriteExperiment("run: [echo one, exit 7, echo two]");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 7);
  EXPECT_THAT(LinesOf(said.out, "1.master"), AllOf(Contains("one"), Not(Contains("two")), Contains("--> FAILED")));
  const json status = Json({"status", "1"});
  EXPECT_EQ(status["exit_code"], 7);
  EXPECT_THAT(status["reason"].get<std::string>(), HasSubstr("exited with 7"));
}

TEST_P(ExperimentCommand, CodeIsThatOfTheStartWhateverIsEditedLater) {
  const ScriptGate gate(Aside("gate"));
  Write("part.sh", "echo old\n");
  WriteExperiment("run: echo begun; read line < " + gate.path() + "; sh ./part.sh");
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun");
  Write("part.sh", "echo new\n");
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 0);
  EXPECT_THAT(LinesOf(train->out, "1.master"), AllOf(Contains("old"), Not(Contains("new"))));
  gate.LetThrough();
  EXPECT_THAT(LinesOf(Out({"train"}), "2.master"), Contains("new"));
}

TEST_P(ExperimentCommand, RisemlsFileIsTaken) {
  Write("riseml.yml", "project: toy\ntrain:\n  framework: tensorflow\n  run: echo $PROJECT $JOB_NAME\n");
  EXPECT_THAT(LinesOf(Out({"train", "--no-venv"}), "1.master"), Contains("toy toy-1"));
}

TEST_P(ExperimentCommand, RisemlsFileWithParameterServersIsTaken) {
  Write("riseml.yml", R"(project: toy
train:
  framework: tensorflow
  tensorflow: {distributed: {worker: 2, ps: 1}}
  run: |
    echo $PROJECT $JOB_NAME on $(uname -n)
    case $TF_CONFIG in *'"type":"ps"'*) sleep 1000;; esac
)");
  const std::string shown = Out({"train", "--no-venv"});
  const json tasks = TasksOf("1");
  std::set<std::string> hosts;
  for (const std::string task : {"1.master", "1.worker.1", "1.ps.1"}) {
    EXPECT_THAT(LinesOf(shown, task), AllOf(Contains(StartsWith("toy toy-1 on ")), Contains("--> FINISHED"))) << task;
    if (on_hosts()) hosts.insert(tasks[task]["host"].get<std::string>());
  }
  EXPECT_EQ(hosts.size(), on_hosts() ? 2 : 0) << "over both";
}

TEST_P(ExperimentCommand, AVolumeIsSeenAndOnlyRead) {
  std::filesystem::create_directory(Aside("data"));
  std::ofstream(Aside("data/digits")) << "0123456789\n";
  WriteExperiment("volumes: ['" + Aside("data") + "']\nrun: cat " + Aside("data/digits") + "; echo x > " +
                  Aside("data/mine") + " || echo refused");
  const std::string shown = Out({"train"});
  EXPECT_THAT(LinesOf(shown, "1.master"), Contains("0123456789"));
  if (!absl::StrContains(shown, "volumes are not read-only")) {
    EXPECT_THAT(LinesOf(shown, "1.master"), Contains("refused"));
    EXPECT_FALSE(std::filesystem::exists(Aside("data/mine")));
  }
}

TEST_P(ExperimentCommand, AnEvaluatorIsBesideTheCluster) {
  Write("muster.yml",
        "project: toy\ntrain:\n  framework: tensorflow\n  tensorflow:\n"
        "    distributed: {worker: 2, evaluator: true}\n  run: echo $TF_CONFIG\n");
  const std::vector<std::string> said = LinesOf(Out({"train", "--no-venv"}), "1.evaluator");
  const auto line = std::find_if(said.begin(), said.end(), [](const auto& text) { return text.starts_with("{"); });
  ASSERT_NE(line, said.end());
  const json config = json::parse(*line);
  EXPECT_EQ(config["task"], json({{"type", "evaluator"}, {"index", 0}}));
  EXPECT_FALSE(config["cluster"].contains("evaluator"));
  EXPECT_EQ(said.back(), "--> FINISHED");
}

TEST_P(ExperimentCommand, WhatChangesAnExperimentNeedsItsIdOutsideAProject) {
  WriteExperiment("run: echo done");
  Out({"train"});
  std::filesystem::remove(project() + "/muster.yml");
  for (const char* command : {"kill", "rerun"})
    EXPECT_THAT(Mistake({command}),
                HasSubstr("an id is needed here: this folder has no muster.yml, whose project's last "
                          "experiment would be meant (the last of all is 1)"));
  EXPECT_THAT(Out({"logs"}), HasSubstr("done")) << "nothing is changed by it";
  Write("muster.yml", "project: far\nsupervisor: gpu1\ntrain:\n  run: echo far\n");
  const std::string elsewhere = "; those that gpu1 supervises are there: muster ls gpu1:\n";
  EXPECT_THAT(Out({"status"}), HasSubstr(elsewhere));
  EXPECT_THAT(absl::StrCat(Mistake({"kill"}), "\n"), HasSubstr(elsewhere));
}

TEST_P(ExperimentCommand, AHomeWithinTheProjectIsNoPartOfIt) {
  WriteExperiment("run: ls -A");
  std::filesystem::create_directory(project() + "/kept");
  std::filesystem::create_directory_symlink(project() + "/kept", home());
  for (const char* id : {"1", "2"}) {
    const std::string shown = Out({"train"});
    EXPECT_THAT(shown, HasSubstr("1 file)...done")) << "the experiments before aren't copied";
    EXPECT_THAT(LinesOf(shown, absl::StrCat(id, ".master")), Contains("muster.yml")) << shown;
    EXPECT_THAT(LinesOf(shown, absl::StrCat(id, ".master")), Not(Contains("kept")));
  }
}

TEST_P(ExperimentCommand, InstallRunsOnceForTheSameContent) {
  KeepForLater();
  const std::string count = Aside("installs");
  WriteExperiment("install: [echo installing, echo x >> " + count + ", touch built]\nrun: ls");
  const std::string first = Out({"train"});
  EXPECT_THAT(LinesOf(first, "1.build"),
              AllOf(Contains("installing"), Contains("--> BUILDING"), Contains("--> FINISHED")));
  EXPECT_THAT(LinesOf(first, "1.master"), Contains("built")) << "it runs in the result";
  const std::string second = Out({"train"});
  EXPECT_THAT(LinesOf(second, "2.build"), Not(Contains("installing")));
  EXPECT_THAT(LinesOf(second, "2.master"), Contains("built"));
  EXPECT_EQ(LinesIn(count), 1);
  Write("other.txt", "");
  EXPECT_THAT(LinesOf(Out({"train"}), "3.master"), AllOf(Contains("built"), Contains("other.txt")));
  EXPECT_EQ(LinesIn(count), 2) << "another content";
}

// What it makes stays where the tasks run, for every experiment with the same content.
TEST_P(ExperimentCommand, SetupRunsOnceForEachHostAndContent) {
  environment_ = {"XDG_CACHE_HOME=" + Aside("cache")};  // of this machine
  KeepForLater();
  const std::string count = Aside("setups");
  Write("needs.txt", "one\n");
  const auto write = [&](const std::string& command) {
    WriteExperiment("torchrun: {workers: 2}\nsetup:\n  files: [needs.txt]\n  run: [" + command + ", echo x >> " +
                    count + ", cp needs.txt $MUSTER_SETUP_DIR/made]\nrun: echo has $(cat $MUSTER_SETUP_DIR/made)");
  };
  write("echo setting up");
  const std::string first = Out({"train"});
  const size_t hosts = shares_setups() ? 1 : 2;
  // Where nodes share the folder, either of them makes it, and the other one finds it.
  size_t made = 0;
  for (const std::string setup : {"1.setup.1", "1.setup.2"}) {
    const std::vector<std::string> lines = LinesOf(first, setup);
    made += static_cast<size_t>(std::count(lines.begin(), lines.end(), "setting up"));
    if (setup == "1.setup.1" || !lines.empty()) {
      EXPECT_THAT(lines, AllOf(Contains("--> BUILDING"), Contains("--> FINISHED")));
    }
  }
  EXPECT_EQ(made, hosts) << first;
  for (const std::string task : {"1.worker.1", "1.worker.2"}) EXPECT_THAT(LinesOf(first, task), Contains("has one"));
  EXPECT_EQ(LinesIn(count), hosts);
  Write("other.txt", "");
  EXPECT_THAT(LinesOf(Out({"train"}), "2.worker.2"), Contains("has one"));
  EXPECT_EQ(LinesIn(count), hosts) << "the same content";
  Write("needs.txt", "two\n");
  EXPECT_THAT(LinesOf(Out({"train"}), "3.worker.2"), Contains("has two"));
  EXPECT_EQ(LinesIn(count), 2 * hosts);
  write("echo the cause >&2, exit 3");
  const Said failed = Muster({"train"});
  EXPECT_EQ(failed.exit_code, 3) << failed.out;
  EXPECT_THAT(Json({"status", "4"})["reason"].get<std::string>(), ContainsRegex("setup\\.[12] exited with 3"));
  EXPECT_THAT(StatesOf(failed.out, "4.worker.1"), Not(Contains("RUNNING")));
  EXPECT_EQ(LinesIn(count), 2 * hosts);
}

TEST_P(ExperimentCommand, AFailedBuildEndsTheExperiment) {
  WriteExperiment("install: [echo trying, exit 3, echo never]\nrun: echo ran");
  const Said said = Muster({"train"});
  EXPECT_NE(said.exit_code, 0);
  EXPECT_THAT(LinesOf(said.out, "1.build"), AllOf(Contains("trying"), Contains("--> FAILED"), Not(Contains("never"))));
  EXPECT_THAT(said.out, Not(HasSubstr("ran\n")));
  EXPECT_THAT(StatesOf(said.out, "1.master"), Not(Contains("RUNNING")));
  const json status = Json({"status", "1"});
  EXPECT_EQ(status["state"], "FAILED");
  EXPECT_THAT(status["reason"].get<std::string>(), AllOf(HasSubstr("build"), HasSubstr("3")));
  // A failed build isn't reused.
  EXPECT_EQ(CountOf("build exited with 3", said.out), 1) << "it is said once:\n" << said.out;
  EXPECT_THAT(LinesOf(Muster({"train"}).out, "2.build"), Contains("trying"));
}

TEST_P(ExperimentCommand, AFailedBuildsCauseIsInItsStatusAndShownOnce) {
  Write("prepare.sh", "echo the cause >&2; exit 1\n");
  WriteExperiment("install: sh prepare.sh\nrun: echo ran");
  const Said said = Muster({"train"});
  EXPECT_EQ(CountOf("the cause", said.out), 1) << said.out;
  EXPECT_THAT(Out({"status", "1"}), HasSubstr("the build failed: build exited with 1; its last line: the cause"));
  if (!has(NotOnEngine::kFrameworkVersion)) return;
  // The remedy that muster's own build names.
  environment_ = {absl::StrCat("PATH=", WriteProgram("python3", "exit 1"), ":", getenv("PATH"))};
  Write("muster.yml", "project: toy\ntrain:\n  framework: pytorch\n  pytorch: {version: 2.0.0}\n  run: echo ran\n");
  Muster({"train"});
  EXPECT_THAT(
      Json({"status", "2"})["reason"].get<std::string>(),
      AllOf(HasSubstr("What to do: install python3 with its module venv"), HasSubstr("muster train --no-venv")));
}

TEST_P(ExperimentCommand, AGridRunsSoManyAtATimeAndShowsItsResults) {
  const ScriptGate gate(Aside("gate"));
  const std::string log = Aside("log");
  RunOn("h1");
  WriteExperiment(
      absl::StrCat("parameters: {depth: [1, 2, 3], kind: [a, b]}\nconcurrency: 2\nrun: |\n  echo + >> ", log,
                   "\n  echo begun $DEPTH$KIND $EXPERIMENT_ID\n  read line < ", gate.path(),
                   "\n  echo \"{\\\"test_accuracy\\\": 0.$DEPTH}\" > $OUTPUT_DIR/metrics.json\n  echo - >> ", log));
  const auto train = StartMuster({"train", "--metric", "test_accuracy"});
  const std::vector<std::string> runs = {"1a 1.1", "1b 1.2", "2a 1.3", "2b 1.4", "3a 1.5", "3b 1.6"};
  // At the same time, as each waits.
  for (size_t i = 0; i < 2; ++i) train->WaitForOut("begun " + runs[i]);
  gate.LetThrough(6);
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err;
  EXPECT_THAT(train->out, HasSubstr("6 runs, 2 at a time"));
  EXPECT_THAT(LinesOf(train->out, "1.6.master"), AllOf(Contains("begun 3b 1.6"), Contains("--> FINISHED")));
  int running = 0;
  int most = 0;
  for (const char c : Read(log)) {
    if (c != '\n') running += c == '+' ? 1 : -1;
    most = std::max(most, running);
  }
  EXPECT_EQ(most, 2);
  const size_t table = train->out.find("test_accuracy");
  ASSERT_NE(table, std::string::npos) << train->out;
  const std::string best_first = train->out.substr(table);
  EXPECT_LT(best_first.find("0.3"), best_first.find("0.2"));
  EXPECT_LT(best_first.find("0.2"), best_first.find("0.1"));
  const json status = Json({"status", "1"});
  ASSERT_EQ(status["run_list"].size(), 6);
  EXPECT_EQ(status["run_list"][3]["id"], "1.4");
  EXPECT_EQ(status["run_list"][3]["parameters"], json({{"depth", "2"}, {"kind", "b"}}));
  EXPECT_NE(status["run_list"][3]["output_dir"], status["run_list"][4]["output_dir"]);
  EXPECT_EQ(Json({"show", "1.4"})["metrics"]["test_accuracy"]["value"], 0.2);
}

TEST_P(ExperimentCommand, RandomSearchDrawsTheSameForTheSameSeed) {
  WriteExperiment("parameters: {rate: {range: {min: 0.0, max: 1.0, step: 0.1}}}\nconcurrency: 3\nrun: echo {{ rate }}");
  const auto parameters = [this](const std::string& id) {
    const json status = Json({"status", id});
    std::vector<json> values;
    for (const json& run : status.at("run_list")) values.push_back(run["parameters"]);
    return values;
  };
  Out({"train", "--random", "3", "--seed", "1"});
  Out({"train", "--random", "3", "--seed", "1"});
  Out({"train", "--random", "3", "--seed", "2"});
  EXPECT_EQ(parameters("1").size(), 3);
  EXPECT_EQ(parameters("1"), parameters("2"));
  EXPECT_NE(parameters("1"), parameters("3"));
}

TEST_P(ExperimentCommand, ParametersOfTheCommandLineReplaceTheFiles) {
  WriteExperiment("parameters: {depth: [1, 2, 3]}\nconcurrency: 1\nrun: echo {{ depth }} {{ more }}");
  EXPECT_THAT(LinesOf(Out({"train", "--param", "depth=7", "--param", "more=some"}), "1.master"), Contains("7 some"));
  const std::string grid = Out({"train", "--param", "depth=[7,8]", "--param", "more=x"});
  EXPECT_THAT(LinesOf(grid, "2.2.master"), Contains("8 x"));
}

TEST_P(ExperimentCommand, AParameterThatNothingMentionsIsSaid) {
  WriteExperiment("parameters: {learning-rate: 0.1}\nrun: echo $LERNING_RATE $LEARNING_RATE");
  const Said said = Muster({"train", "--param", "lerning-rate=7"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.err, HasSubstr("parameter 'lerning-rate' is neither in muster.yml nor in its commands (nearest: "
                                  "learning-rate)"));
  EXPECT_THAT(LinesOf(said.out, "1.master"), Contains("7 0.1"));
}

TEST_P(ExperimentCommand, TwoAtOnceHaveIdsOfTheirOwn) {
  WriteExperiment("run: echo $EXPERIMENT_ID > $OUTPUT_DIR/id");
  const auto one = StartMuster({"train"});
  const auto other = StartMuster({"train"});
  EXPECT_EQ(one->Wait(), 0) << one->err;
  EXPECT_EQ(other->Wait(), 0) << other->err;
  for (const std::string id : {"1", "2"}) {
    const json shown = Json({"show", id});
    EXPECT_EQ(shown["state"], "FINISHED");
    EXPECT_EQ(Read(shown["output_dir"].get<std::string>() + "/id"), id + "\n");
  }
}

TEST_P(ExperimentCommand, WhatIsKnownIsShownAsTablesAndJson) {
  WriteExperiment(
      "parameters: {depth: 4}\n"
      "run: echo '{\"loss\":0.25}' > $OUTPUT_DIR/metrics.json; mkdir $OUTPUT_DIR/sub; echo abc > $OUTPUT_DIR/sub/file");
  Out({"train"});
  WriteExperiment("run: exit 4");
  EXPECT_EQ(Muster({"train"}).exit_code, 4);
  const std::vector<std::string> status = absl::StrSplit(Out({"status"}), '\n', absl::SkipEmpty());
  ASSERT_EQ(status.size(), 3);
  EXPECT_THAT(status[0], ContainsRegex("^ID +PROJECT +STATE +AGE +WHY$"));
  EXPECT_THAT(status[1], ContainsRegex("^1 +toy +FINISHED +[0-9]+ (s|min)$"));
  EXPECT_THAT(status[2], ContainsRegex("^2 +toy +FAILED +[0-9]+ (s|min) +master exited with 4$"));
  EXPECT_THAT(Out({"status", "2"}), ContainsRegex("\n2\\.master +FAILED .*exited with 4\n"));
  const std::vector<std::string> ls = absl::StrSplit(Out({"ls"}), '\n', absl::SkipEmpty());
  ASSERT_EQ(ls.size(), 3);
  EXPECT_THAT(ls[0], ContainsRegex("^ID +PROJECT +STATE +CREATED +DURATION +EXIT +PARAMETERS$"));
  EXPECT_THAT(ls[1], ContainsRegex("^1 +toy +FINISHED +[0-9-]+T[0-9:]+Z .* 0 +depth=4$"));
  EXPECT_THAT(Out({"ls", "--last", "1", "--ids"}), "2\n");
  EXPECT_THAT(Json({"ls", "--project", "other"}), IsEmpty());
  EXPECT_THAT(Out({"show", "1"}), AllOf(HasSubstr("depth"), HasSubstr("loss  0.25"), HasSubstr("sub/file"),
                                        HasSubstr("4 bytes"), HasSubstr(home())));
  const json shown = Json({"show", "1"});
  EXPECT_EQ(shown["parameters"], json({{"depth", "4"}}));
  EXPECT_EQ(shown["metrics"]["loss"]["value"], 0.25);
  EXPECT_EQ(shown["exit_code"], 0);
  EXPECT_THAT(shown["files"], Contains(json({{"path", "sub/file"}, {"bytes", 4}})));
  EXPECT_EQ(shown["tasks"][0]["id"], "1.master");
  EXPECT_THAT(Out({"show"}), StartsWith("experiment 2 "));
}

TEST_P(ExperimentCommand, JsonIsAnObjectALineTheExperimentLast) {
  WriteExperiment("run: echo hello");
  const std::string out = Out({"train", "--json"});
  std::vector<json> lines;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(out, '\n', absl::SkipEmpty())))
    lines.push_back(json::parse(line));
  ASSERT_GE(lines.size(), 3);
  EXPECT_EQ(lines.back()["id"], "1");
  EXPECT_EQ(lines.back()["state"], "FINISHED");
  const bool said = std::any_of(lines.begin(), lines.end(), [](const json& line) {
    return line.value("id", "") == "1.master" && line.value("text", "") == "hello";
  });
  EXPECT_TRUE(said) << out;
}

TEST_F(ExperimentCommandHere, BashCompletesCommandsFlagsAndIds) {
  WriteExperiment("run: echo hello");
  Out({"train"});
  std::ofstream(Aside("completion.bash")) << Out({"completion", "bash"});
  const auto completed = [this](const std::vector<std::string>& words) {
    std::string script = "source " + Aside("completion.bash") + "; COMP_WORDS=(" + BinFolder() + "/muster";
    for (const std::string& word : words) script += " '" + word + "'";
    absl::StrAppend(&script, "); COMP_CWORD=", words.size(), "; _muster ", BinFolder(),
                    "/muster; printf '%s\\n' \"${COMPREPLY[@]}\"");
    Process bash({"/bin/bash", "-c", script}, {.environment = {{"MUSTER_HOME", home()}}});
    EXPECT_EQ(bash.Wait(), 0) << bash.err;
    return std::vector<std::string>(absl::StrSplit(bash.out, '\n', absl::SkipEmpty()));
  };
  EXPECT_THAT(completed({"tr"}), ElementsAre("train", "trace"));
  EXPECT_THAT(completed({"train", "--par"}), ElementsAre("--param"));
  EXPECT_THAT(completed({"checkpoint", "ver"}), ElementsAre("verify"));
  EXPECT_THAT(completed({"kill", ""}), ElementsAre("1"));
  EXPECT_THAT(completed({"completion", ""}), ElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(completed({""}), AllOf(Contains("status"), Not(Contains("supervise")))) << "that is hidden";
}

TEST_F(ExperimentCommandHere, EveryCommandIsInEveryShellsCompletion) {
  const std::string help = Out({"--help"});
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string script = Out({"completion", shell});
    for (const std::string command : {"train", "status", "kill", "ls", "show", "rerun", "run", "completion"}) {
      EXPECT_THAT(help, HasSubstr("\n  " + command + " "));
      EXPECT_THAT(script, HasSubstr("'" + command + "'")) << shell;
    }
    EXPECT_THAT(script, HasSubstr(shell == "fish" ? "-l param" : "--param")) << shell;
  }
  const Said unknown = Muster({"completion", "csh"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("'csh': accepted are bash, zsh, fish"));
}

TEST_F(ExperimentCommandHere, HelpTeachesWithExamples) {
  for (const std::string command : {"train", "status", "kill", "ls", "show", "rerun", "completion"})
    EXPECT_THAT(Out({command, "--help"}), AllOf(HasSubstr("Examples:"), HasSubstr("muster " + command)));
}

}  // namespace
}  // namespace muster::experiment_command_test
