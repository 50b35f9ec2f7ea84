// The digits example as a user runs it: the same program under `muster run`, by hand with flags, by hand with
// TF_CONFIG, and alone; stopped, killed and restarted; and given input that it can't use.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/process.h"
#include "tests/process/testing/update_way_flags.h"

namespace muster::digits_test {
namespace {

using ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

const std::string kMuster = BinFolder() + "/muster";
const std::vector<std::string> kDigits = {BinFolder() + "/digits",
                                          "--csv=" + SourceFolder() + "/examples/data/digits.csv"};

void Write(const std::string& path, const std::string& bytes) {
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), path, AsBytes(bytes.data(), bytes.size())).ok());
}

// Writes four files of MNIST's kind with a handful of images.
void WriteTinyMnist(const std::string& directory, int side) {
  constexpr char kImages = 20;
  const auto big_endian = [](int number) { return std::string{0, 0, 0, static_cast<char>(number)}; };
  const std::string images = std::string("\0\0\x08\x03", 4) + big_endian(kImages) + big_endian(side) + big_endian(side);
  const std::string labels = std::string("\0\0\x08\x01", 4) + big_endian(kImages);
  for (const std::string part : {"train", "t10k"}) {
    Write(absl::StrCat(directory, "/", part, "-images-idx3-ubyte"),
          images + std::string(static_cast<size_t>(kImages * side * side), '\x40'));
    Write(absl::StrCat(directory, "/", part, "-labels-idx1-ubyte"), labels + std::string(kImages, '\x07'));
  }
}

class Digits : public testing::Test {
 protected:
  // No process started here may outlive its test.
  void TearDown() override { EXPECT_THAT(ProcessesWith(mark_.first + "=" + mark_.second), IsEmpty()); }

  ProcessOptions Options(std::vector<std::pair<std::string, std::string>> environment = {}) const {
    environment.push_back(mark_);
    return {.environment = std::move(environment)};
  }
  std::vector<std::string> Train(int steps) const {
    return Joined(kDigits, {absl::StrCat("--steps=", steps), "--report=" + scratch_ / "report.json"});
  }
  // Returns what the chief has written about the run.
  nlohmann::json Report() const {
    return nlohmann::json::parse(PosixFileSystem().ReadFile(scratch_ / "report.json").value());
  }
  void ExpectTrained(int steps) const {
    const nlohmann::json report = Report();
    EXPECT_GE(report["accuracy"], 0.9);
    EXPECT_GE(report["global_steps"], steps);
  }
  std::string model_dir() const { return "--model_dir=" + scratch_ / "model"; }

  ScratchFolder scratch_;
  const std::pair<std::string, std::string> mark_ = {
      "DIGITS_TEST", absl::StrCat(getpid(), testing::UnitTest::GetInstance()->current_test_info()->name())};
};

TEST_F(Digits, UnderMusterRun) {
  for (const std::string ps : {"--muster-ps", "--color=never"}) {  // the command's own ps, and the program as ps
    std::vector<std::string> words = {kMuster,   "run", "--ps",        "2", "--workers",   "2",
                                      "--chief", "1",   "--evaluator", ps,  "--model_dir", scratch_ / ("in" + ps),
                                      "--"};
    Process run(Joined(words, Train(300)), Options());
    EXPECT_EQ(run.Wait(), 0) << run.err;
    ExpectTrained(300);
    EXPECT_THAT(run.err, Not(HasSubstr("first failure"))) << run.err;
    EXPECT_THAT(run.err, Not(HasSubstr("being ended"))) << "every ps ends by itself: " << run.err;
    EXPECT_THAT(run.err, HasSubstr("Saving dict for global step "));
    const std::string run_id = After(run.err, "[muster] run ").at(0);
    EXPECT_THAT(ProcessesWith("MUSTER_RUN_ID=" + run_id), IsEmpty());
  }
}

TEST_F(Digits, ByHandWithFlags) {
  ByHand cluster(1, 2);
  Process ps(Joined(Train(300), cluster.Flags("ps", 0)), Options());
  Process worker0(Joined(Train(300), cluster.Flags("worker", 0)), Options());
  Process worker1(Joined(Train(300), cluster.Flags("worker", 1)), Options());
  EXPECT_EQ(worker0.Wait(), 0) << worker0.err;
  EXPECT_EQ(worker1.Wait(), 0) << worker1.err;
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
  ExpectTrained(300);
}

TEST_F(Digits, ByHandWithTfConfig) {
  ByHand cluster(1, 1, /*chief=*/true);
  const std::string model = scratch_ / "model";
  Process chief(Train(300), Options({{"TF_CONFIG", cluster.TfConfig("chief", 0, model)}}));
  Process worker(Train(300), Options({{"TF_CONFIG", cluster.TfConfig("worker", 0, model)}}));
  Process ps(Train(300), Options({{"TF_CONFIG", cluster.TfConfig("ps", 0, model)}}));
  EXPECT_EQ(chief.Wait(), 0) << chief.err;
  EXPECT_EQ(worker.Wait(), 0) << worker.err;
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
  ExpectTrained(300);
  EXPECT_THAT(Report()["checkpoint"].get<std::string>(), HasSubstr(model + "/model.ckpt-"));
}

TEST_F(Digits, Alone) {
  Process alone(Train(150), Options());
  EXPECT_EQ(alone.Wait(), 0) << alone.err;
  ExpectTrained(150);
  EXPECT_EQ(Report()["global_steps"], 150);
}

TEST_F(Digits, TrainsByTheAlgorithmAndTheRuleThatAreNamed) {
  const std::vector<std::pair<std::string, std::string>> rules = {
      {"", "adam [^\n]*learning_rate=0\\.001"},
      {"--algorithm=ssp --learning_rate=0.002", "adam [^\n]*learning_rate=0\\.002"},
      {"--algorithm=synchronous --server_rule=sgd:learning_rate=0.05", "sgd learning_rate=0\\.05"},
      {"--algorithm=downpour_easy --window=2", "add"}};  // the rule is on the workers
  for (const auto& [flags, rule] : rules) {
    const ScratchFolder model;
    const std::vector<std::string> words = absl::StrSplit(flags, ' ', absl::SkipEmpty());
    Process alone(Joined(Train(4), Joined(words, {"--model_dir=" + model.path()})), Options());
    EXPECT_EQ(alone.Wait(), 0) << alone.err;
    EXPECT_EQ(Report()["global_steps"], 4) << flags;
    Process show({kMuster, "checkpoint", "show", model.path()}, Options());
    EXPECT_EQ(show.Wait(), 0) << show.err;
    EXPECT_THAT(show.out, ContainsRegex("\nrule +" + rule + "\n")) << flags;
  }
}

// Instances differ by the way of an update.
class DigitsByWay : public Digits, public ::testing::WithParamInterface<UpdateWay> {
 protected:
  std::vector<std::string> TrainByWay(int steps) const { return Joined(Train(steps), WholeFlagsOf(GetParam())); }
};

INSTANTIATE_TEST_SUITE_P(Ways, DigitsByWay, ::testing::ValuesIn(kWholeWays), NameOfWay);

TEST_P(DigitsByWay, GoesOnWhereTheCheckpointIsAlsoWithOtherPs) {
  int start = 0;
  for (const int num_ps : {2, 3}) {
    ByHand cluster(num_ps, 1);
    std::vector<std::unique_ptr<Process>> ps;
    for (int i = 0; i < num_ps; ++i)
      ps.push_back(std::make_unique<Process>(Joined({kMuster, "ps"}, cluster.Flags("ps", i)), Options()));
    Process chief(Joined(TrainByWay(start + 50), Joined(cluster.Flags("worker", 0), {model_dir()})), Options());
    EXPECT_EQ(chief.Wait(), 0) << chief.err;
    if (start > 0) {
      EXPECT_THAT(chief.err,
                  HasSubstr(absl::StrCat("Restoring parameters from ", scratch_ / "model", "/model.ckpt-", start)));
    }
    EXPECT_THAT(chief.err, HasSubstr(absl::StrCat(", step = ", start + 1, "\n")));
    start += 50;
    EXPECT_EQ(Report()["global_steps"], start);
    for (const auto& process : ps) EXPECT_EQ(process->Wait(), 0) << process->err;
  }
  Process alone(Joined(Train(start + 50), {model_dir()}), Options());
  EXPECT_EQ(alone.Wait(), 0) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr(absl::StrCat(", step = ", start + 1, "\n")));
  ExpectTrained(start + 50);
}

// The order of the data continues, too: weights and moments after the last step are the same to the bit.
TEST_F(Digits, WhatIsRestoredTrainsAsIfNothingHadHappened) {
  for (const std::vector<int>& lives : {std::vector<int>{120}, {50, 120}}) {
    const std::string model = absl::StrCat("--model_dir=", scratch_.path(), "/lives", lives.size());
    for (const int steps : lives) {
      Process life(Joined(Train(steps), {model}), Options());
      EXPECT_EQ(life.Wait(), 0) << life.err;
    }
  }
  Process diff({kMuster, "checkpoint", "diff", scratch_ / "lives1/model.ckpt-120", scratch_ / "lives2/model.ckpt-120"},
               Options());
  EXPECT_EQ(diff.Wait(), 0) << diff.out << diff.err;
}

TEST_P(DigitsByWay, AKilledChiefIsStartedAgain) {
  ByHand cluster(2, 2);
  Process ps0(Joined({kMuster, "ps"}, cluster.Flags("ps", 0)), Options());
  Process ps1(Joined({kMuster, "ps"}, cluster.Flags("ps", 1)), Options());
  Process worker(Joined(TrainByWay(500), cluster.Flags("worker", 1)), Options());
  const std::vector<std::string> chief = Joined(TrainByWay(500), Joined(cluster.Flags("worker", 0), {model_dir()}));
  Process first(chief, Options());
  first.WaitForErr("loss = ");
  first.Signal(SIGKILL);
  EXPECT_EQ(first.Wait(), 128 + SIGKILL);
  Process second(chief, Options());
  EXPECT_EQ(second.Wait(), 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("The ps hold the model already: going on with it."));
  EXPECT_EQ(worker.Wait(), 0) << worker.err;
  EXPECT_EQ(ps0.Wait(), 0) << ps0.err;
  EXPECT_EQ(ps1.Wait(), 0) << ps1.err;
  ExpectTrained(500);
}

TEST_P(DigitsByWay, CtrlCSavesAndEndsEverybody) {
  Process run(Joined({kMuster, "run", "--ps", "2", "--muster-ps", "--workers", "1", "--chief", "1", "--model_dir",
                      scratch_ / "model", "--"},
                     TrainByWay(1000000000)),
              Options());
  run.WaitForErr("global_step/sec: ");
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 0) << run.err;
  EXPECT_THAT(run.err.substr(run.err.find("interrupted: ending")), HasSubstr("Saving checkpoints for "));
  EXPECT_THAT(run.err, Not(HasSubstr("first failure")));
  EXPECT_GT(Report()["global_steps"], 0);
}

TEST_F(Digits, WrongUsageIsOneLineAndStartsNothing) {
  const std::string row = absl::StrJoin(std::vector<int>(65, 1), ",") + "\n";
  Write(scratch_ / "empty.csv", "");
  Write(scratch_ / "ragged.csv", row + "1,2,3\n");
  Write(scratch_ / "words.csv", row + row + "zero" + row.substr(1));
  Write(scratch_ / "narrow.csv", "1,2,3\n");
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> mistakes = {
      {{"--stesp=3"}, {"--stesp", "--help"}},
      {{"--steps=0"}, {"--steps: '0': accepted is a whole number from 1"}},
      {{"--batch_size=many"}, {"--batch_size: 'many': accepted is a whole number from 1"}},
      {{"extra"}, {"extra"}},
      {{"--algorithm=dynsg"}, {"unknown algorithm", "dynsg", "nearest: dynsgd"}},
      {{"--csv=" + scratch_ / "none.csv"}, {"--csv: ", scratch_ / "none.csv", "No such file"}},
      {{"--csv=" + scratch_.path()}, {scratch_.path(), "directory"}},
      {{"--csv=" + scratch_ / "empty.csv"}, {scratch_ / "empty.csv", "empty"}},
      {{"--csv=" + scratch_ / "ragged.csv"}, {scratch_ / "ragged.csv", "line 2", "3 columns"}},
      {{"--csv=" + scratch_ / "words.csv"}, {scratch_ / "words.csv", "line 3", "\"zero\" is not a number"}},
      {{"--csv=" + scratch_ / "narrow.csv"}, {scratch_ / "narrow.csv", "line 1", "65"}},
      {{"--data_dir=" + scratch_.path()},
       {"--data_dir: " + scratch_.path() + "/train-images-idx3-ubyte", "no such file"}},
      {{"--job_name=worker", "--task_index=3", "--worker_hosts=a:1,a:2"}, {"--task_index", "3 is out of range"}},
      {{"--job_name=ps", "--task_index=0"}, {"--job_name", "ps", "without a cluster"}},
  };
  for (const auto& [words, texts] : mistakes) {
    Process digits(Joined({kDigits[0]}, words), Options());
    EXPECT_EQ(digits.Wait(), 2) << words[0] << ": " << digits.err;
    EXPECT_EQ(digits.out, "");
    EXPECT_EQ(digits.err.find('\n'), digits.err.size() - 1) << digits.err;
    for (const std::string& text : texts) EXPECT_THAT(digits.err, HasSubstr(text));
  }
  Process digits(kDigits, Options({{"TF_CONFIG", R"({"task": {"type": "chief", "index": 0}})"}}));
  EXPECT_EQ(digits.Wait(), 2);
  EXPECT_THAT(digits.err, HasSubstr("TF_CONFIG task.type: \"chief\" without a cluster"));
}

TEST_F(Digits, WithoutItsPsItGivesUp) {
  ByHand cluster(1, 1);
  const std::vector<std::string> flags = cluster.Flags("worker", 0);
  Process worker(Joined(kDigits, Joined(flags, {"--ps_timeout=1"})), Options());
  EXPECT_EQ(worker.Wait(), 138) << worker.err;
  EXPECT_THAT(worker.err, HasSubstr("digits: ps:0 (" + cluster.ps_address(0) + ") could not be reached within "));
  ByHand without(0, 2);
  Process lonely(Joined(kDigits, without.Flags("worker", 0)), Options());
  EXPECT_EQ(lonely.Wait(), 2) << lonely.err;
  EXPECT_THAT(lonely.err, HasSubstr("algorithm hogwild: needs a ps, and this cluster has none"));
}

TEST_F(Digits, AnotherModelIsRefusedByItsFirstDifference) {
  WriteTinyMnist(scratch_.path(), 28);
  const std::vector<std::string> mnist = Joined(kDigits, {"--data_dir=" + scratch_.path(), "--batch_size=5"});
  ByHand cluster(1, 2);
  Process ps(Joined({kMuster, "ps"}, cluster.Flags("ps", 0)), Options());
  Process other(Joined(mnist, cluster.Flags("worker", 1)), Options());
  other.WaitForErr("Waiting for the chief");
  Process chief(Joined(Train(50), Joined(cluster.Flags("worker", 0), {model_dir()})), Options());
  EXPECT_EQ(other.Wait(), 1) << other.err;
  for (const char* text : {"digits: ps:0", "worker:1", "'hidden.weight' float32[64,6272]", "float32[64,512]"})
    EXPECT_THAT(other.err, HasSubstr(text));
  EXPECT_EQ(chief.Wait(), 0) << chief.err;
  EXPECT_EQ(ps.Wait(), 0) << ps.err;

  Process alone(Joined(mnist, {model_dir()}), Options());
  EXPECT_EQ(alone.Wait(), 1) << alone.err;
  for (const std::string& text : {std::string("digits: "), scratch_ / "model" + "/model.ckpt-50",
                                  std::string("hidden.weight"), std::string("[64,6272]"), std::string("[64,512]")})
    EXPECT_THAT(alone.err, HasSubstr(text));

  Process fresh(Joined(mnist, {"--steps=2"}), Options());
  EXPECT_EQ(fresh.Wait(), 0) << fresh.err;
}

}  // namespace
}  // namespace muster::digits_test
