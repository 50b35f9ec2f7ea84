// How experiments run and end: undisturbed, killed, retried, with tasks that fail, ignore signals or leave processes
// behind, and without their supervisor. The tests wait for events (a line, a FIFO, a lock), never for time.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/engines.h"

namespace muster::experiment_life_test {
namespace {

using nlohmann::json;
using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::ElementsAre, ::testing::HasSubstr,
    ::testing::Not;

// A task that prints a line and ends when it is asked to.
constexpr char kLoop[] = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 1000 & wait; done";
// A master, a worker and a ps; the shell variable `type` has the task's job.
constexpr char kCluster[] = R"(tensorflow: {distributed: {worker: 2, ps: 1}}
run: |
  type=${TF_CONFIG##*\"type\":\"}; type=${type%%\"*}
)";

class ExperimentLife : public OnEveryEngine {
 protected:
  // Writes kCluster with every task running `script`, and with another line in the section `train`.
  void WriteCluster(const std::string& script, const std::string& more = "concurrency: 1") {
    std::string text = absl::StrCat("project: toy\ntrain:\n  framework: tensorflow\n  ", more, "\n");
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(kCluster, '\n', absl::SkipEmpty())))
      absl::StrAppend(&text, "  ", line, "\n");
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(script, '\n', absl::SkipEmpty())))
      absl::StrAppend(&text, "    ", line, "\n");
    Write("muster.yml", text);
  }
};

// In a job, a supervisor that is killed has a successor (tests/process/slurm, ray, spark, kubernetes).
class ExperimentSupervisedHere : public ExperimentLife {};

INSTANTIATE_TEST_SUITE_P(, ExperimentLife, EveryEngine(), EngineName);
INSTANTIATE_TEST_SUITE_P(, ExperimentSupervisedHere, EnginesWith(NotOnEngine::kEndWithItsSupervisor), EngineName);

TEST_P(ExperimentLife, CtrlCOnlyDetaches) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: echo begun; read line < " + gate.path() + "; echo done");
  const auto train = StartMuster({"train"});
  if (on_hosts()) train->WaitForErr(AboutSleep());
  train->WaitForOut("begun");
  train->Signal(SIGINT);
  EXPECT_EQ(train->Wait(), 0);
  if (!on_hosts()) {
    EXPECT_THAT(train->err, Not(HasSubstr("this machine")));
  }
  EXPECT_THAT(train->err, HasSubstr("; muster logs 1 -f shows it, muster kill 1 ends it"));
  EXPECT_EQ(StateOf("1"), "RUNNING");
  gate.LetThrough();
  AwaitEnd("1");
  EXPECT_EQ(StateOf("1"), "FINISHED");
  EXPECT_THAT(Out({"logs", "1"}), HasSubstr("done"));
}

TEST_P(ExperimentLife, TheEndOfTheTerminalEndsNothing) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: echo begun; read line < " + gate.path() + "; echo done");
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun");
  train->Signal(SIGHUP);
  EXPECT_EQ(train->Reap(), 128 + SIGHUP);
  gate.LetThrough();
  AwaitEnd("1");
  EXPECT_EQ(StateOf("1"), "FINISHED");
}

// The command goes on showing the output. The tasks ignore SIGHUP with and without nohup.
TEST_P(ExperimentLife, UnderNohupTheEndOfTheTerminalEndsNotEvenTheCommand) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: kill -HUP $$; echo begun; read line < " + gate.path() + "; echo done");
  Process train(Joined({"/usr/bin/nohup"}, Command({"train"})),
                {.environment = {{"MUSTER_HOME", home()}}, .directory = project()});
  train.WaitForOut("begun");
  train.Signal(SIGHUP);
  gate.LetThrough();
  EXPECT_EQ(train.Wait(), 0) << train.err;
  EXPECT_THAT(LinesOf(train.out, "1.master"), AllOf(Contains("done"), Contains("--> FINISHED")));
}

TEST_P(ExperimentLife, DetachedItSaysItsIdAndReturns) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: read line < " + gate.path());
  EXPECT_THAT(Out({"train", "--detach"}), HasSubstr("experiment 1 is "));
  EXPECT_EQ(Json({"train", "--detach"})["id"], "2");
  gate.LetThrough(2);
  AwaitEnd("1");
  AwaitEnd("2");
}

TEST_P(ExperimentLife, KillEndsAllTasksAndShowsIt) {
  WriteCluster(kLoop);
  const auto train = StartMuster({"train", "--no-venv"});
  for (const std::string task : {"1.master", "1.worker.1", "1.ps.1"}) AwaitLines(*train, task, 2);
  const Said kill = Muster({"kill", "1"});
  EXPECT_EQ(kill.exit_code, 0) << kill.err;
  for (const std::string task : {"1.master", "1.worker.1", "1.ps.1"})
    EXPECT_THAT(LinesOf(kill.out, task), AllOf(Contains("--> KILLED"), Not(Contains("bye")))) << kill.out;
  EXPECT_THAT(kill.out, HasSubstr("experiment 1: KILLED\n"));
  EXPECT_EQ(train->Wait(), 130);
  EXPECT_THAT(LinesOf(train->out, "1.worker.1"), Contains("bye"));
  EXPECT_THAT(train->err, HasSubstr("experiment 1: KILLED"));
  EXPECT_THAT(train->out, HasSubstr("killed: ending master, ps.1, worker.1; what is left after "));
  for (const json& task : TasksOf("1")) {
    EXPECT_EQ(task["state"], "KILLED") << task;
    EXPECT_EQ(task["reason"], "ended by muster kill") << task;
  }
}

TEST_P(ExperimentLife, KillWithoutAnIdMeansTheProjectsLast) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: echo begun; read line < " + gate.path());
  Out({"train", "--detach"});
  Out({"train", "--detach"});
  EXPECT_EQ(Muster({"kill"}).exit_code, 0);
  EXPECT_EQ(StateOf("2"), "KILLED");
  const Said again = Muster({"kill"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("experiment 2 had ended before: KILLED"));
  EXPECT_EQ(Muster({"kill", "--all"}).exit_code, 0);
  EXPECT_EQ(StateOf("1"), "KILLED");
  EXPECT_THAT(Out({"kill", "--all"}), HasSubstr("no experiment is running"));
}

TEST_P(ExperimentLife, KillOfSomethingEndedSaysSo) {
  WriteExperiment("run: echo hello");
  Out({"train"});
  const Said kill = Muster({"kill", "1"});
  EXPECT_EQ(kill.exit_code, 1);
  EXPECT_THAT(kill.err, HasSubstr("experiment 1 had ended before: FINISHED"));
  EXPECT_EQ(Muster({"kill", "1.master"}).exit_code, 2);
}

TEST_P(ExperimentLife, WhoIgnoresTheSignalIsKilledAfterItsGrace) {
  WriteExperiment("run: trap '' TERM; echo ready; while :; do sleep 1000; done");
  const auto train = StartMuster({"train", "--stop-grace", "0"});
  train->WaitForOut("ready");
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 0);
  EXPECT_EQ(train->Wait(), 130);
  EXPECT_EQ(TasksOf("1")["1.master"]["exit_code"], 137);
}

TEST_P(ExperimentLife, KillNowDoesNotWaitForTheGrace) {
  WriteExperiment("run: trap '' TERM; echo ready; while :; do sleep 1000; done");
  const auto train = StartMuster({"train", "--stop-grace", "100000"});
  train->WaitForOut("ready");
  EXPECT_EQ(Muster({"kill", "1", "--now"}).exit_code, 0);
  EXPECT_EQ(train->Wait(), 130);
}

TEST_P(ExperimentLife, CtrlCWhileKillWaitsKillsAtOnce) {
  WriteExperiment("run: trap '' TERM; echo ready; while :; do sleep 1000; done");
  const auto train = StartMuster({"train", "--stop-grace", "100000"});
  train->WaitForOut("ready");
  const auto kill = StartMuster({"kill", "1"});
  kill->WaitForErr("Ctrl-C kills them at once");
  kill->Signal(SIGINT);
  EXPECT_EQ(kill->Wait(), 0);
  EXPECT_THAT(kill->err, HasSubstr("killing them at once"));
  EXPECT_EQ(train->Wait(), 130);
}

TEST_P(ExperimentLife, OneRunOfAGridIsKilledAlone) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment(
      absl::StrCat("parameters: {x: [1, 2, 3]}\nconcurrency: 2\nrun: echo begun $X; read line < ", gate.path()));
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun 1");
  train->WaitForOut("begun 2");
  const Said kill = Muster({"kill", "1.2"});
  EXPECT_EQ(kill.exit_code, 0) << kill.err;
  train->WaitForOut("begun 3");
  gate.LetThrough(2);
  EXPECT_NE(train->Wait(), 0) << "not all have finished";
  EXPECT_EQ(StateOf("1.1"), "FINISHED");
  EXPECT_EQ(StateOf("1.2"), "KILLED");
  EXPECT_EQ(StateOf("1.3"), "FINISHED");
}

TEST_P(ExperimentLife, ARunThatWaitsForItsTurnIsKilledToo) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("parameters: {x: [1, 2, 3]}\nrun: echo begun $X; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun 1");
  EXPECT_EQ(Muster({"kill", "1.2"}).exit_code, 0);
  gate.LetThrough(2);
  EXPECT_NE(train->Wait(), 0);
  EXPECT_THAT(train->out, AllOf(HasSubstr("begun 3"), Not(HasSubstr("begun 2"))));
  EXPECT_EQ(StateOf("1.2"), "KILLED");
  EXPECT_EQ(StateOf("1.3"), "FINISHED");
}

TEST_P(ExperimentLife, AKilledGridEndsAllItsRuns) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment(
      absl::StrCat("parameters: {x: [1, 2, 3]}\nconcurrency: 2\nrun: echo begun $X; read line < ", gate.path()));
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun 1");
  train->WaitForOut("begun 2");
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 0);
  EXPECT_EQ(train->Wait(), 130);
  EXPECT_THAT(train->out, Not(HasSubstr("begun 3")));
  for (const std::string run : {"1", "1.1", "1.2", "1.3"}) EXPECT_EQ(StateOf(run), "KILLED") << run;
}

TEST_P(ExperimentLife, KillNowOfAGridDoesNotWaitForTheGraceOfItsRuns) {
  WriteExperiment(
      "parameters: {x: [1, 2]}\nconcurrency: 2\nrun: trap '' TERM; echo begun $X; while :; do sleep 1000; done");
  const auto train = StartMuster({"train", "--stop-grace", "100000"});
  train->WaitForOut("begun 1");
  train->WaitForOut("begun 2");
  EXPECT_EQ(Muster({"kill", "1", "--now"}).exit_code, 0);
  EXPECT_EQ(train->Wait(), 130);
  for (const std::string run : {"1.1", "1.2"}) EXPECT_EQ(StateOf(run), "KILLED") << run;
}

TEST_P(ExperimentSupervisedHere, ARunOfAGridThatLosesItsSupervisorWhileItWaitsHasFailed) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("parameters: {x: [1, 2]}\nconcurrency: 2\ninstall: read line < " + gate.path() + "\nrun: echo $X");
  const auto train = StartMuster({"train"});
  train->WaitForOut("waiting for it\n");
  // One of the two builds, and the other waits for it.
  const bool first_waits =
      testing::Value(LinesOf(train->out, "1.1"), Contains("another experiment is building the same: waiting for it"));
  const std::string waits = first_waits ? "1.1" : "1.2";
  ASSERT_EQ(StateOf(waits), "PENDING");
  KillSupervisor(waits);
  train->WaitForOut("run " + waits + ": FAILED");
  // On hosts of commands, stderr says whose hosts this command has given back.
  const json status = json::parse(Muster({"status", waits, "--json"}).out);
  EXPECT_EQ(status["state"], "FAILED");
  EXPECT_EQ(status["reason"], "its supervisor was killed");
  EXPECT_EQ(StateOf("1"), "RUNNING");
  gate.LetThrough();
  EXPECT_NE(train->Wait(), 0);
}

TEST_P(ExperimentLife, AFailedMasterEndsTheOthersAndIsNamedWithItsLastLines) {
  const ScriptGate gate(Aside("gate"));
  WriteCluster(absl::StrCat("if [ $type = master ]; then read line < ", gate.path(),
                            "; seq 1 12; echo why >&2; exit 3; fi\n", kLoop));
  const auto train = StartMuster({"train", "--no-venv"});
  for (const std::string task : {"1.worker.1", "1.ps.1"}) AwaitLines(*train, task, 2);
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 3);
  EXPECT_EQ(StatesOf(train->out, "1.master").back(), "FAILED");
  EXPECT_EQ(StatesOf(train->out, "1.worker.1").back(), "KILLED");
  EXPECT_EQ(StatesOf(train->out, "1.ps.1").back(), "KILLED");
  EXPECT_EQ(TasksOf("1")["1.ps.1"]["reason"], "ended by muster, because master exited with 3");
  EXPECT_THAT(Out({"show", "1"}), ContainsRegex("1\\.ps\\.1 +KILLED, ended by muster, because master exited with 3\n"));
  const std::string reason = Json({"status", "1"})["reason"].get<std::string>();
  EXPECT_THAT(reason, AllOf(HasSubstr("master"), HasSubstr("exited with 3")));
  EXPECT_THAT(train->err, HasSubstr(reason));
  // Once among its own lines, once as the last lines of the task that failed first.
  const size_t own = train->out.find("why");
  EXPECT_NE(train->out.find("why", own + 1), std::string::npos) << train->out;
}

TEST_P(ExperimentLife, AKilledWorkerIsStartedAgain) {
  const ScriptGate gate(Aside("gate"));
  WriteCluster(absl::StrCat("case $type in master) read line < ", gate.path(),
                            ";; ps) sleep 1000;; *) if [ -e $OUTPUT_DIR/was ]; then echo again; read line < ",
                            gate.path(), "; else touch $OUTPUT_DIR/was; kill -9 $$; fi;; esac"));
  const auto train = StartMuster({"train", "--no-venv"});
  AwaitLines(*train, "1.worker.1", 3);
  const std::string how = "was killed by signal 9 \\(killed\\), from outside";
  EXPECT_THAT(Out({"status", "1"}), ContainsRegex("1\\.worker\\.1 +RUNNING .*was restarted: " + how));
  EXPECT_THAT(Out({"show", "1"}), ContainsRegex("1\\.worker\\.1 +RUNNING, " + how));
  EXPECT_THAT(train->out, ContainsRegex("worker\\.1 " + how + ".*: starting it again"));
  gate.LetThrough(2);
  EXPECT_EQ(train->Wait(), 0);
  EXPECT_THAT(StatesOf(train->out, "1.worker.1"), ElementsAre("RUNNING", "RUNNING", "FINISHED"));
  EXPECT_THAT(LinesOf(train->out, "1.worker.1"), Contains("again"));
  EXPECT_EQ(TasksOf("1")["1.worker.1"]["restarts"], 1);
}

TEST_P(ExperimentLife, AlwaysStartsAgainWhatHasEndedWell) {
  const ScriptGate gate(Aside("gate"));
  Write("muster.yml",
        absl::StrCat("project: toy\ntrain:\n  framework: tensorflow\n  tensorflow: {distributed: {worker: 1, "
                     "ps: {count: 1, restart: {policy: always, backoff: 1ms}}}}\n  run: |\n"
                     "    case $TF_CONFIG in *'\"type\":\"master\"'*) read line < ",
                     gate.path(), "; exit 0;; esac\n",
                     "    echo life $MUSTER_TASK_LIFE\n    [ $MUSTER_TASK_LIFE = 3 ] || exit 0\n"
                     "    sleep 1000\n"));
  const auto train = StartMuster({"train", "--no-venv"});
  train->WaitForOut("life 3");
  EXPECT_THAT(Out({"status", "1"}), ContainsRegex("1\\.ps\\.1 +RUNNING .*was restarted: exited with 0"));
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 0) << train->out;
  EXPECT_THAT(LinesOf(train->out, "1.ps.1"), AllOf(Contains("life 1"), Contains("life 2"), Contains("life 3")));
  EXPECT_EQ(TasksOf("1")["1.ps.1"]["restarts"], 2);
}

TEST_P(ExperimentLife, AWorkerBeyondItsRestartsEndsTheExperiment) {
  WriteCluster("[ $type = worker ] && kill -9 $$\nsleep 1000", "restart: {limit: 1, backoff: 1ms}");
  const Said said = Muster({"train", "--no-venv"});
  EXPECT_NE(said.exit_code, 0);
  EXPECT_EQ(StatesOf(said.out, "1.worker.1").back(), "FAILED");
  EXPECT_EQ(StatesOf(said.out, "1.master").back(), "KILLED");
  EXPECT_EQ(TasksOf("1")["1.worker.1"]["restarts"], 1);
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(), AllOf(HasSubstr("worker.1"), HasSubstr("signal 9")));
}

TEST_P(ExperimentLife, GrandchildrenLeftBehindAreEnded) {
  // One in the task's group, one that ignores signals, one in its own session: the fixture looks for them.
  WriteExperiment(
      "restart: {policy: never}\n"
      "run: |\n  sleep 1000 &\n  sh -c 'trap \"\" TERM HUP INT; sleep 1000; :' &\n  setsid sleep 1000 &\n"
      "  echo started\n  kill -9 $$");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 137) << said.out;
  EXPECT_THAT(said.out, HasSubstr("started"));
}

TEST_P(ExperimentLife, AnotherAttemptGoesOnWhereTheLastOneEnded) {
  WriteExperiment(
      OutputThatStays() +
      "parameters: {step: 1, other: 2}\n"
      "run: if [ -e $OUTPUT_DIR/saved ]; then echo resumed $STEP $OTHER; else touch $OUTPUT_DIR/saved; exit 1; fi");
  EXPECT_EQ(Muster({"train", "--param", "step=5"}).exit_code, 1);
  const json before = Json({"show", "1"});
  WriteExperiment(
      OutputThatStays() +
      "parameters: {step: 1, other: 2}\nrun: echo edited; test -e $OUTPUT_DIR/saved && echo resumed $STEP $OTHER");
  const Said again = Muster({"train", "--experiment", "1"});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(LinesOf(again.out, "1.master"), AllOf(Contains("edited"), Contains("resumed 5 2")));
  EXPECT_THAT(again.err,
              HasSubstr("muster train: step is 5 as before, not 1 as in muster.yml now; --param step=VALUE"));
  EXPECT_THAT(again.err, Not(HasSubstr("other is")));
  const json after = Json({"show", "1"});
  EXPECT_EQ(after["state"], "FINISHED");
  EXPECT_EQ(after["attempt"], 2);
  EXPECT_EQ(after["output_dir"], before["output_dir"]);
  EXPECT_EQ(after["exit_code"], 0);
  const Said other = Muster({"train", "--experiment", "1", "--param", "other=3"});
  EXPECT_THAT(LinesOf(other.out, "1.master"), Contains("resumed 5 3"));
  EXPECT_THAT(other.err, Not(HasSubstr("other is"))) << "the user has just said so";
  EXPECT_EQ(Json({"ls"}).size(), 1) << "no new one";
}

TEST_P(ExperimentLife, AnotherAttemptShowsItsOwnLinesOnly) {
  WriteExperiment("run: echo first");
  Out({"train"});
  WriteExperiment("run: echo second");
  const std::string shown = Out({"train", "--experiment", "1"});
  EXPECT_THAT(StatesOf(shown, "1"), ElementsAre("CREATED", "FINISHED"));
  EXPECT_THAT(StatesOf(shown, "1.master"), ElementsAre("RUNNING", "FINISHED"));
  EXPECT_THAT(LinesOf(shown, "1.master"), AllOf(Contains("second"), Not(Contains("first"))));
  EXPECT_THAT(LinesOf(Out({"logs", "1"}), "1.master"), AllOf(Contains("second"), Contains("first"))) << "both there";
}

TEST_P(ExperimentLife, AnotherAttemptOfAGridShowsItsOwnLinesOnly) {
  const std::string grid = "parameters: {step: [1, 2]}\nconcurrency: 1\n";
  WriteExperiment(grid + "run: echo first $STEP; exit 1");
  EXPECT_EQ(Muster({"train"}).exit_code, 1);
  WriteExperiment(grid + "run: echo second $STEP");
  const std::string both = Out({"train", "--experiment", "1"});
  EXPECT_THAT(both, Not(HasSubstr("first")));
  EXPECT_THAT(LinesOf(both, "1.1.master"), Contains("second 1"));
  EXPECT_THAT(LinesOf(both, "1.2.master"), Contains("second 2"));
  const std::string run = Out({"train", "--experiment", "1.2"});
  EXPECT_EQ(StatesOf(run, "1.2.master").size(), 2) << run;
}

TEST_P(ExperimentLife, AnotherAttemptOfAGridRunsWhatHasNotFinished) {
  const std::string grid = "parameters: {step: [1, 2, 3]}\nconcurrency: 1\n";
  WriteExperiment(grid + "run: echo ran $STEP; [ $STEP = 1 ]");
  EXPECT_EQ(Muster({"train"}).exit_code, 1);
  EXPECT_EQ(Json({"status", "1"})["reason"], "2 of 3 runs failed");
  WriteExperiment(grid + "run: echo again $STEP; [ $STEP != 3 ]");
  const Said again = Muster({"train", "--experiment", "1"});
  EXPECT_THAT(again.out, AllOf(HasSubstr("Experiment 1: 3 runs, 1 at a time; 1 of them has finished before\n"),
                               Not(HasSubstr("again 1")), HasSubstr("again 2"), HasSubstr("again 3")));
  const json status = Json({"status", "1"});
  EXPECT_EQ(status["reason"], "1 of 3 runs failed");
  EXPECT_EQ(status["run_list"][0]["attempt"], 1);
  EXPECT_EQ(status["run_list"][1]["attempt"], 2);
  // Other parameters are another run.
  EXPECT_EQ(Muster({"train", "--experiment", "1", "--param", "other=1"}).exit_code, 1);
  EXPECT_EQ(Json({"status", "1.1"})["attempt"], 2);
  WriteExperiment(grid + "run: echo last");
  EXPECT_EQ(Muster({"train", "--experiment", "1"}).exit_code, 0);
  const Said finished = Muster({"train", "--experiment", "1"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr("all 3 runs of grid 1 have finished; muster rerun runs them again"));
}

TEST_P(ExperimentLife, APsThatMusterEndsHasEndedWell) {
  WriteCluster("[ $type = ps ] || exit 0\nsleep 1000");
  Out({"train", "--no-venv"});
  EXPECT_EQ(TasksOf("1")["1.ps.1"]["state"], "FINISHED");
  EXPECT_THAT(Out({"show", "1"}),
              AllOf(ContainsRegex("1\\.ps\\.1 +FINISHED, ended by muster"), Not(HasSubstr("exited with 143"))));
  EXPECT_THAT(Out({"status", "1"}), Not(HasSubstr("exited with 143")));
}

TEST_P(ExperimentLife, ASignalIsNamedAlsoBelowAShell) {
  Write("crash.sh", "kill -SEGV $$\n");
  WriteExperiment("run: sh crash.sh");
  EXPECT_EQ(Muster({"train"}).exit_code, 139);
  EXPECT_EQ(Json({"status", "1"})["reason"], "master was killed by signal 11 (segmentation fault)");
  WriteExperiment("run: sh crash.sh && echo never");
  EXPECT_EQ(Muster({"train"}).exit_code, 139);
  EXPECT_EQ(Json({"status", "2"})["reason"],
            "master exited with 139, as its program was killed by signal 11 (segmentation fault)");
}

TEST_P(ExperimentLife, AnotherAttemptIsRefusedWhileItGoesOn) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: read line < " + gate.path());
  Out({"train", "--detach"});
  const Said again = Muster({"train", "--experiment", "1"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("experiment 1 is still running"));
  gate.LetThrough();
  AwaitEnd("1");
  EXPECT_EQ(Json({"status", "1"})["attempt"], 1);
}

TEST_P(ExperimentLife, RerunIsANewOneOfTheOldFileCodeAndParameters) {
  Write("part.sh", "echo old $STEP\n");
  WriteExperiment("parameters: {step: [1, 2]}\nconcurrency: 1\nrun: sh ./part.sh");
  Out({"train", "--param", "step=5"});
  Out({"train"});
  Write("part.sh", "echo new\n");
  WriteExperiment("run: echo edited");
  const std::string shown = Out({"rerun", "1"});
  EXPECT_THAT(LinesOf(shown, "3.master"), Contains("old 5"));
  EXPECT_NE(Json({"show", "3"})["output_dir"], Json({"show", "1"})["output_dir"]);
  EXPECT_THAT(LinesOf(Out({"rerun", "2.2"}), "4.master"), Contains("old 2"));
  EXPECT_THAT(LinesOf(Out({"rerun", "2"}), "5.1.master"), Contains("old 1"));
  // Makes it old enough for `muster gc`, which goes by this time.
  const std::string tree = home() + "/code/" + Json({"show", "1"})["tree"].get<std::string>();
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(48);
  std::filesystem::last_write_time(tree, long_ago);
  Out({"rerun", "1"});
  EXPECT_GT(std::filesystem::last_write_time(tree), long_ago);
  std::filesystem::remove_all(home() + "/code");
  const Said gone = Muster({"rerun", "1"});
  EXPECT_EQ(gone.exit_code, 2);
  EXPECT_THAT(gone.err, HasSubstr("the code of experiment 1 isn't kept any more"));
}

TEST_P(ExperimentSupervisedHere, WithoutItsSupervisorItIsFailedAndNoTaskIsLeft) {
  WriteCluster(absl::StrCat("echo pid $$\n", kLoop));
  const auto train = StartMuster({"train", "--no-venv"});
  Watched tasks;
  for (const std::string task : {"1.master", "1.worker.1", "1.ps.1"}) {
    AwaitLines(*train, task, 3);
    if (!on_hosts()) tasks.Add(std::stoi(LinesOf(train->out, task)[1].substr(4)));
  }
  KillSupervisor("1");
  EXPECT_NE(train->Wait(), 0);
  tasks.WaitForEnds();
  // On hosts they go on for the grace. (The test's hosts have their processes on this machine, which stderr says.)
  const json status = json::parse(Muster({"status", "1", "--json"}).out);
  EXPECT_EQ(status["state"], "FAILED");
  EXPECT_THAT(status["reason"].get<std::string>(), HasSubstr("supervisor"));
  EXPECT_EQ(status["tasks"].size(), 3);
  for (const json& task : status["tasks"]) EXPECT_EQ(task["state"], "FAILED") << task;
  // The experiment can be retried: on hosts, once the tasks of the one before have surely ended.
  WriteExperiment("run: echo hello");
  const Said again = Muster({"train", "--experiment", "1"});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(testing::Value(again.err, HasSubstr("its tasks on hosts may still run")), on_hosts()) << again.err;
}

TEST_P(ExperimentLife, AllGoesOnWhenNobodyReadsTheLines) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: read line < " + gate.path() + "; seq 100000; touch " + Aside("done"));
  const auto train = StartMuster({"train"});
  train->WaitForOut("RUNNING");
  gate.LetThrough();
  AwaitEnd("1");
  EXPECT_TRUE(std::filesystem::exists(Aside("done")));
  EXPECT_EQ(train->Wait(), 0);
  EXPECT_EQ(LinesOf(train->out, "1.master").size(), 1 + 100000 + 1) << "none is lost";
}

}  // namespace
}  // namespace muster::experiment_life_test
