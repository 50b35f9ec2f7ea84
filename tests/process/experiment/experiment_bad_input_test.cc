// How `muster train` and its companions answer mistakes, and that these leave nothing behind: files, flags, ids, a home
// that can't be written; tasks that flood their log or write binary data. The keys of a file have their own tests
// beside its parser.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/launch/task/resources.h"
#include "tests/process/testing/engines.h"

namespace muster::experiment_bad_input_test {
namespace {

using nlohmann::json;
using ::testing::AllOf, ::testing::Contains, ::testing::HasSubstr, ::testing::Not, ::testing::StartsWith;

// What the command refuses, before it asks an engine for anything.
class ExperimentBadInput : public ExperimentsTest {
 protected:
  // Expects that `muster train` with this section is a mistake, and that it creates no experiment. Returns the message.
  std::string WrongTrain(const std::string& train, const std::vector<std::string>& flags = {}) {
    WriteExperiment(train);
    std::string message = Mistake(Joined({"train"}, flags));
    EXPECT_EQ(Json({"ls", "--all"}), json::array()) << "nothing is created";
    return message;
  }
};

TEST_F(ExperimentBadInput, UndefinedParameters) {
  EXPECT_THAT(WrongTrain("run:\n- true\n- echo {{ depth }} {{ width }}"),
              AllOf(HasSubstr("muster train: muster.yml:6: train.run[2]: {{ depth }}: there is no such parameter"),
                    HasSubstr("muster train: muster.yml:6: train.run[2]: {{ width }}: there is no such parameter")));
  EXPECT_THAT(WrongTrain("parameters: {learning-rate: 1}\nrun: echo {{ lerning-rate }}"),
              AllOf(HasSubstr("lerning-rate"), HasSubstr("learning-rate")))
      << "names the nearest";
  EXPECT_THAT(WrongTrain("run: echo {{ depth"), HasSubstr("}}"));
}

TEST_F(ExperimentBadInput, MoreThanTheMachineHas) {
  EXPECT_THAT(
      WrongTrain("resources: {mem: 100000GB}\nrun: echo hello"),
      HasSubstr("muster train: muster.yml:4: train.resources: master asks for 100000.0 GB of memory, this machine"));
  EXPECT_THAT(WrongTrain("resources: {cpus: 100000}\nrun: echo hello"), AllOf(HasSubstr("cpus"), HasSubstr("machine")));
  const int gpus = ThisMachine().gpus;
  EXPECT_THAT(WrongTrain(absl::StrCat("resources: {gpus: ", gpus + 1, "}\nrun: echo hello")),
              AllOf(HasSubstr(absl::StrCat("master asks for ", gpus + 1, " gpu")),
                    HasSubstr(absl::StrCat("machine has ", gpus)), HasSubstr("--no-gpus")));
  Out({"train", "--no-gpus"});
}

TEST_F(ExperimentBadInput, MoreGpusTogetherThanTheMachineHas) {
  const int gpus = ThisMachine().gpus;
  if (gpus == 0) GTEST_SKIP() << "there is no GPU of which several tasks could ask for too many";
  Write("muster.yml", absl::StrCat("project: toy\ntrain:\n  framework: tensorflow\n  resources: {gpus: ", gpus,
                                   "}\n  tensorflow: {distributed: {worker: 2}}\n  run: echo hello\n"));
  EXPECT_THAT(Mistake({"train"}), HasSubstr("--no-gpus"));
}

TEST_F(ExperimentBadInput, AVolumeThatIsNotThere) {
  EXPECT_THAT(WrongTrain("volumes: [/no/such/folder]\nrun: echo hello"),
              HasSubstr("muster.yml: train.volumes: /no/such/folder doesn't exist"));
}

TEST_F(ExperimentBadInput, GridsOfNothing) {
  EXPECT_THAT(WrongTrain("parameters: {x: []}\nrun: echo hello"), HasSubstr("x"));
  EXPECT_THAT(WrongTrain("parameters: {x: {range: {min: 0, max: 1, step: 0}}}\nrun: echo hello"), HasSubstr("step"));
  EXPECT_THAT(WrongTrain("run: echo hello", {"--param", "x=[]"}), HasSubstr("x"));
}

TEST_F(ExperimentBadInput, FlagsOfTrain) {
  const std::string fine = "parameters: {x: [1, 2]}\nrun: echo {{ x }}";
  EXPECT_THAT(WrongTrain(fine, {"--param", "novalue"}), HasSubstr("novalue"));
  EXPECT_THAT(WrongTrain(fine, {"--random", "none"}), HasSubstr("--random 'none': accepted is a whole number"));
  EXPECT_THAT(WrongTrain(fine, {"--random", "0"}), HasSubstr("--random '0'"));
  EXPECT_THAT(WrongTrain(fine, {"--seed", "1"}), HasSubstr("--seed: accepted with --random only"));
  EXPECT_THAT(WrongTrain(fine, {"--random", "2", "--seed", "x"}), HasSubstr("--seed 'x'"));
  EXPECT_THAT(WrongTrain(fine, {"--random", "2", "--experiment", "1"}), HasSubstr("--random: accepted without"));
  EXPECT_THAT(WrongTrain(fine, {"--stop-grace", "soon"}), HasSubstr("--stop-grace 'soon'"));
  EXPECT_THAT(WrongTrain(fine, {"--experiment", "7"}), HasSubstr("7"));
  EXPECT_THAT(WrongTrain(fine, {"--experiment", "seven"}), HasSubstr("seven"));
  EXPECT_THAT(WrongTrain(fine, {"--file", "none.yml"}), HasSubstr("none.yml: no such file"));
  EXPECT_THAT(WrongTrain(fine, {"--colour"}), HasSubstr("--colour"));
}

TEST_F(ExperimentBadInput, AFolderWithoutAFile) {
  EXPECT_THAT(Mistake({"train"}), AllOf(HasSubstr("muster.yml"), HasSubstr("riseml.yml"), HasSubstr("muster init")));
  EXPECT_FALSE(std::filesystem::exists(home())) << "nothing is made";
}

TEST_F(ExperimentBadInput, AFileWithMistakesNamesThemAll) {
  Write("muster.yml", "project: toy\ntrain:\n  framwork: any\n  run: 7x\n  concurrency: 0\n");
  EXPECT_THAT(Mistake({"train"}), AllOf(HasSubstr("muster.yml:3: "), HasSubstr("framwork"), HasSubstr("framework"),
                                        HasSubstr("muster.yml:5: ")));
  EXPECT_FALSE(std::filesystem::exists(home()));
}

TEST_F(ExperimentBadInput, IdsThatDoNotExist) {
  WriteExperiment("run: echo hello");
  for (const std::string command : {"status", "kill", "show", "rerun"}) {
    EXPECT_THAT(Mistake({command, "99"}), HasSubstr("99"));
    EXPECT_THAT(Mistake({command, "x.y"}), HasSubstr("x.y"));
  }
  for (const std::string command : {"kill", "show", "rerun"}) EXPECT_THAT(Mistake({command}), HasSubstr("toy"));
  // What "$id" gives if there is no such variable: it must not mean the last experiment.
  for (const std::string command : {"status", "monitor", "logs", "kill", "show", "results", "rerun", "tensorboard"})
    EXPECT_THAT(Mistake({command, ""}), HasSubstr("an id can't be empty"));
  EXPECT_THAT(Mistake({"train", "--experiment", ""}),
              HasSubstr("--experiment has no value; accepted: --experiment=ID"));
  Out({"train"});
  EXPECT_THAT(Mistake({"status", "1.worker.7"}), HasSubstr("1.worker.7"));
  EXPECT_THAT(Mistake({"show", "1.3"}), HasSubstr("experiment 1 isn't a grid: it has no run 3"));
  EXPECT_THAT(Mistake({"kill", "1.3"}), HasSubstr("it has no run 3"));
}

TEST_F(ExperimentBadInput, FlagsOfTheOthers) {
  EXPECT_THAT(Mistake({"ls", "--last", "few"}), HasSubstr("--last 'few'"));
  EXPECT_THAT(Mistake({"ls", "--all", "--project", "toy"}), HasSubstr("--project"));
  EXPECT_THAT(Mistake({"status", "1", "--all"}), HasSubstr("--all"));
  EXPECT_THAT(Mistake({"kill", "1", "--all"}), HasSubstr("--all"));
}

TEST_F(ExperimentBadInput, APathThatIsNoTextIsInNoJobWhoseScriptIsJson) {
  WriteExperiment("run: echo hello");
  const std::string odd = "MUSTER_HOME=" + home() + "/kn\xf6pfe";
  for (const std::vector<std::string>& on :
       {std::vector<std::string>{"--on", "ray"}, {"--on", "spark", "--address", "spark://127.0.0.1:1"}}) {
    Process train(Joined({"/usr/bin/env", odd}, Command(Joined({"train"}, on))), Options());
    EXPECT_EQ(train.Wait(), 2) << train.out;
    EXPECT_THAT(train.err,
                AllOf(HasSubstr("MUSTER_HOME is "), HasSubstr("kn\xf6pfe"), HasSubstr("accepted: a path in UTF-8")));
  }
  EXPECT_FALSE(std::filesystem::exists(home())) << "nothing is made";
}

// Nobody knows whether the job was made. Once the API answers, there is none, and nothing of it is left.
TEST_F(ExperimentBadInput, AClusterThatDoesNotAnswerIsAskedUntilItSaysThatThereIsNoJob) {
  const std::string up = Aside("up");
  const std::string kubectl = absl::StrCat(
      WriteProgram("kubectl",
                   absl::StrCat("[ -e ", up, " ] || { echo 'dial tcp: connect: connection refused' >&2; exit 1; }\n",
                                "case \"$*\" in *--raw=*) echo '{\"items\": []}';; esac")),
      "/kubectl");
  WriteExperiment("run: echo hello");
  const Said said = Muster({"train", "--on", "kubernetes", "--kubernetes", "image=i", "--kubernetes", "context=c",
                            "--kubernetes", "namespace=n", "--kubernetes", absl::StrCat("kubectl=", kubectl)});
  EXPECT_EQ(said.exit_code, 1) << said.out << said.err;
  EXPECT_THAT(said.err, AllOf(HasSubstr("connection refused"), HasSubstr("may have made a job of experiment 1")));
  const json ended = Json({"status", "1"});
  EXPECT_EQ(ended["state"], "FAILED");
  EXPECT_EQ(ended["exit_code"], 1);
  EXPECT_THAT(Out({"status", "1"}), AllOf(HasSubstr("connection refused"), HasSubstr("was made isn't known")));
  std::ofstream(up) << "";
  Process fetched({"/bin/sh", "-c", absl::StrCat("while [ -e ", home(), "/far/1 ]; do sleep 0.1; done")});
  EXPECT_EQ(fetched.Wait(), 0);
  EXPECT_THAT(Out({"status", "1"}), AllOf(HasSubstr("connection refused"), Not(HasSubstr("known"))));
}

TEST_F(ExperimentBadInput, AHomeThatCannotBeWritten) {
  std::ofstream(home()) << "in its place";
  WriteExperiment("run: echo hello");
  EXPECT_THAT(Mistake({"train"}), AllOf(HasSubstr(home()), HasSubstr("MUSTER_HOME")));
  EXPECT_THAT(Mistake({"status"}), AllOf(HasSubstr(home()), HasSubstr("MUSTER_HOME")));
}

TEST_F(ExperimentBadInput, AnExperimentOfAnotherProject) {
  WriteExperiment("run: echo hello");
  Out({"train"});
  Write("muster.yml", "project: other\ntrain: {run: echo hello}\n");
  EXPECT_THAT(Mistake({"train", "--experiment", "1"}), AllOf(HasSubstr("project toy"), HasSubstr("project other")));
}

// What an engine starts, and brings here.
class ExperimentBadPrograms : public OnEveryEngine {};

INSTANTIATE_TEST_SUITE_P(, ExperimentBadPrograms, ::testing::Values("local", "ssh"), EngineName);

TEST_P(ExperimentBadPrograms, AProgramThatIsNotThere) {
  WriteExperiment("run: no-such-program --flag");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 127);
  EXPECT_THAT(said.out, HasSubstr("no-such-program"));
  const json status = Json({"status", "1"});
  EXPECT_EQ(status["state"], "FAILED");
  EXPECT_EQ(status["tasks"][0]["restarts"], 0) << "another try wouldn't help";
}

TEST_P(ExperimentBadPrograms, AFloodIsBoundedAndBlocksNobody) {
  // Ten times what is kept. The experiment ends, and its last lines are in the log.
  WriteExperiment(
      "log_limit: 1MB\nrun: seq -f 'line %010g of many, some of which nobody will read' 1 200000; echo last");
  Out({"train", "--detach"});
  AwaitEnd("1");
  EXPECT_EQ(StateOf("1"), "FINISHED");
  uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(Json({"show", "1"})["logs"].get<std::string>()))
    if (file.is_regular_file()) bytes += file.file_size();
  EXPECT_LE(bytes, 2 << 20);
  EXPECT_GE(bytes, 1 << 19) << "the newest are kept";
  const std::vector<std::string> kept = After(Out({"logs", "1.master"}), "1.master | line ");
  ASSERT_FALSE(kept.empty());
  for (size_t i = 0; i < kept.size(); ++i)
    ASSERT_EQ(std::stoul(kept[i]), 200000 - kept.size() + 1 + i) << "those are the last, and all of them";
  EXPECT_THAT(LinesOf(Out({"logs", "1"}), "1.master"), AllOf(Contains("last"), Contains("--> FINISHED")));
}

TEST_P(ExperimentBadPrograms, BinaryGarbageDoesNotReachTheTerminal) {
  WriteExperiment(R"(run: printf 'a\000b\033]0;title\007c\377\376\r\n'; head -c 100000 /dev/urandom; echo; echo last)");
  const std::string shown = Out({"train"});
  EXPECT_THAT(LinesOf(shown, "1.master"),
              AllOf(Contains(StartsWith(R"(a\x00b\x1b]0;title\x07c\xff\xfe)")), Contains("last")));
  for (const char c : shown) ASSERT_TRUE(c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= 0x20) << int{c};
}

}  // namespace
}  // namespace muster::experiment_bad_input_test
