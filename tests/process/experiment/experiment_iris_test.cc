// The example of an Experiment as a user runs it: alone, as a cluster by hand whose chief is a master, and by its
// run.sh; again with the same id; and when it can't know its folder or write to it.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/process.h"

namespace muster::experiment_iris_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not,
    ::testing::SizeIs;

const std::vector<std::string> kProgram = {BinFolder() + "/experiment_iris",
                                           "--csv=" + SourceFolder() + "/examples/experiment_iris/iris.csv"};
const std::string kScript = SourceFolder() + "/examples/experiment_iris/run.sh";

class ExperimentIris : public testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(ProcessesWith(mark_.first + "=" + mark_.second), IsEmpty()); }

  // Hides the machine's own variables for folders.
  ProcessOptions Options(std::vector<std::pair<std::string, std::string>> more = {}) const {
    std::vector<std::pair<std::string, std::string>> environment = {mark_};
    for (const char* name : {"OUTPUT_DIR", "EXPERIMENT_ID", "JOB_NAME"}) {
      const bool said = std::any_of(more.begin(), more.end(), [&](const auto& one) { return one.first == name; });
      if (!said) environment.emplace_back(name, "");
    }
    environment.insert(environment.end(), more.begin(), more.end());
    return {.environment = std::move(environment), .directory = scratch_.path()};
  }
  std::string Root() const { return "--output_root=" + scratch_.path(); }
  // Returns the printed loss, which must appear once; in a cluster the last steps of other workers may be counted, too.
  static double Loss(const Process& run, const std::string& behind = "") {
    const std::vector<std::string> said = After(run.out, "Average loss ");
    EXPECT_THAT(said, SizeIs(1)) << run.out << run.err;
    double loss = 1;
    if (said.size() == 1) {
      EXPECT_THAT(said[0], HasSubstr(behind));
      EXPECT_TRUE(absl::SimpleAtod(said[0].substr(0, said[0].find(' ')), &loss)) << said[0];
    }
    return loss;
  }
  void ExpectUsageError(const std::vector<std::string>& flags,
                        const std::vector<std::pair<std::string, std::string>>& environment,
                        const std::vector<std::string>& texts) const {
    Process run(Joined(kProgram, flags), Options(environment));
    EXPECT_EQ(run.Wait(), 2) << run.out << run.err;
    for (const std::string& text : texts) EXPECT_THAT(run.err, HasSubstr(text));
    EXPECT_EQ(run.out, "");
  }

  const LeftBehind left_;
  const ScratchFolder scratch_;
  const std::pair<std::string, std::string> mark_ = {
      "EXPERIMENT_IRIS_TEST", absl::StrCat(getpid(), testing::UnitTest::GetInstance()->current_test_info()->name())};
};

TEST_F(ExperimentIris, AloneItLearnsInTheFolderOfItsId) {
  Process run(Joined(kProgram, {Root()}), Options({{"EXPERIMENT_ID", "18"}}));
  EXPECT_EQ(run.Wait(), 0) << run.out << run.err;
  // Predicting the mean of the labels, as a network of dead units does, gives 0.25.
  EXPECT_LT(Loss(run, " after 1000 steps"), 0.1);
  EXPECT_THAT(run.err, HasSubstr("device placement of worker:0:"));
  EXPECT_THAT(run.err, HasSubstr("dnn.hiddenlayer_0.weight"));
  EXPECT_THAT(run.err, Not(HasSubstr("resuming from")));
  EXPECT_THAT(EntriesOf(scratch_ / "18"), Contains("checkpoint"));
  EXPECT_THAT(EntriesOf(scratch_ / "18"), Contains("eval"));
}

TEST_F(ExperimentIris, TheSameIdResumesAndSaysSo) {
  const auto run = [&](int steps) {
    auto process = std::make_unique<Process>(Joined(kProgram, {Root(), absl::StrCat("--steps=", steps)}),
                                             Options({{"EXPERIMENT_ID", "18"}}));
    EXPECT_EQ(process->Wait(), 0) << process->out << process->err;
    Loss(*process, absl::StrCat(" after ", steps, " steps"));
    return process->err;
  };
  EXPECT_THAT(run(20), Not(HasSubstr("resuming from")));
  EXPECT_THAT(run(40), HasSubstr("resuming from " + scratch_ / "18/model.ckpt-20"));
  EXPECT_THAT(run(40), HasSubstr("resuming from " + scratch_ / "18/model.ckpt-40")) << "nothing is left to train";
}

// With contrib.learn's delay of 120 s this would be ended as a test that hangs.
TEST_F(ExperimentIris, AnEvaluationByItselfBeginsWhenItIsTold) {
  Process train(Joined(kProgram, {Root(), "--steps=20"}), Options({{"EXPERIMENT_ID", "18"}}));
  EXPECT_EQ(train.Wait(), 0) << train.err;
  Process evaluate(Joined(kProgram, {Root(), "--schedule=evaluate", "--eval_delay_secs=0"}),
                   Options({{"EXPERIMENT_ID", "18"}}));
  EXPECT_EQ(evaluate.Wait(), 0) << evaluate.err;
  Loss(evaluate, " after 20 steps");
  Process help(Joined(kProgram, {"--help"}), Options());
  EXPECT_EQ(help.Wait(), 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("--eval_delay_secs SECONDS=5"), Not(HasSubstr("TEXT")), Not(HasSubstr("INT"))));
}

TEST_F(ExperimentIris, EachWayToSayTheFolderWinsOverTheNext) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"TF_CONFIG", absl::StrCat("{\"model_dir\": \"", scratch_ / "tf_config", "\"}")},
      {"OUTPUT_DIR", scratch_ / "output_dir"},
      {"EXPERIMENT_ID", "experiment"},
      {"JOB_NAME", "job"}};
  const auto folder_of = [&](const std::vector<std::string>& flags, size_t first) {
    Process run(Joined(kProgram, Joined({Root(), "--steps=1"}, flags)),
                Options({all.begin() + static_cast<std::ptrdiff_t>(first), all.end()}));
    EXPECT_EQ(run.Wait(), 0) << run.out << run.err;
    const std::vector<std::string> entries = EntriesOf(scratch_.path());
    EXPECT_THAT(entries, SizeIs(1));
    for (const std::string& entry : entries) EXPECT_TRUE(PosixFileSystem().RemoveTree(scratch_ / entry).ok());
    return entries.empty() ? "" : entries[0];
  };
  EXPECT_EQ(folder_of({"--model_dir=" + scratch_ / "flag"}, 0), "flag");
  EXPECT_EQ(folder_of({}, 0), "tf_config");
  EXPECT_EQ(folder_of({}, 1), "output_dir");
  EXPECT_EQ(folder_of({}, 2), "experiment");
  EXPECT_EQ(folder_of({}, 3), "job");
}

TEST_F(ExperimentIris, NobodySaysTheFolder) {
  ExpectUsageError({}, {},
                   {"experiment_iris: no folder for checkpoints", "--model_dir", "OUTPUT_DIR", "EXPERIMENT_ID",
                    "JOB_NAME", "/data/tensorflow-output", "--output_root"});
}

// Uses a file as the root, since the test's user may be allowed to write anywhere.
TEST_F(ExperimentIris, ARootThatCanNotBeWrittenTo) {
  const std::string file = scratch_ / "file";
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), file, {}).ok());
  ExpectUsageError(
      {"--output_root=" + file}, {{"EXPERIMENT_ID", "18"}},
      {"experiment_iris: " + file + "/18 (EXPERIMENT_ID below the output root " + file + ") can't be written to",
       "Not a directory", "--output_root"});
  ExpectUsageError({}, {{"OUTPUT_DIR", file + "/out"}},
                   {"experiment_iris: " + file + "/out (OUTPUT_DIR) can't be written to"});
  ExpectUsageError({"--output_root=" + scratch_.path()}, {{"JOB_NAME", "../18"}},
                   {"experiment_iris: JOB_NAME: \"../18\""});
}

TEST_F(ExperimentIris, RefusesWhatItDoesNotKnow) {
  const std::vector<std::pair<std::string, std::string>> id = {{"EXPERIMENT_ID", "18"}};
  ExpectUsageError({Root(), "--schedule=train_and_evalute"}, id, {"(nearest: train_and_evaluate)"});
  ExpectUsageError({Root(), "--steps=0"}, id, {"train_steps is 0; accepted: a whole number from 1"});
  ExpectUsageError({Root(), "--ouput_root=x"}, id, {"unknown argument \"--ouput_root=x\" (nearest: --output_root)"});
}

TEST_F(ExperimentIris, AClusterByHandWithAMaster) {
  ByHand cluster(/*ps=*/1, /*workers=*/1, /*chief=*/true);
  const auto start = [&](const std::string& job) {
    const std::string tf_config =
        absl::StrReplaceAll(cluster.TfConfig(job, 0, scratch_ / "model"), {{"\"chief\"", "\"master\""}});
    return std::make_unique<Process>(kProgram, Options({{"TF_CONFIG", tf_config}}));
  };
  const auto worker = start("worker");
  const auto master = start("chief");
  const auto ps = start("ps");
  EXPECT_EQ(master->Wait(), 0) << master->out << master->err;
  EXPECT_EQ(worker->Wait(), 0) << worker->out << worker->err;
  EXPECT_EQ(ps->Wait(), 0) << ps->out << ps->err;

  EXPECT_LT(Loss(*master), 0.1) << "the master evaluates";
  EXPECT_EQ(worker->out + ps->out, "");
  EXPECT_THAT(master->err, HasSubstr("[master:0] device placement of master:0:"));
  EXPECT_THAT(master->err, HasSubstr("schedule train_and_evaluate (of this task)"));
  EXPECT_THAT(worker->err, HasSubstr("schedule train (of this task)"));
  EXPECT_THAT(ps->err, HasSubstr("schedule run_std_server (of this task)"));
}

TEST_F(ExperimentIris, ByItsScript) {
  auto options = Options({{"EXPERIMENT_ID", "18"}});
  options.environment.emplace_back("MUSTER_BIN_DIR", BinFolder());
  Process run({"/bin/bash", kScript, Root(), "--steps=200"}, options);
  EXPECT_EQ(run.Wait(), 0) << run.out << run.err;
  EXPECT_THAT(After(run.out, "[worker:0] Average loss "), SizeIs(1)) << run.out << run.err;
  EXPECT_EQ(access(kScript.c_str(), X_OK), 0);
}

TEST_F(ExperimentIris, ItsScriptSaysThatItIsNotBuilt) {
  auto options = Options();
  options.environment.emplace_back("MUSTER_BIN_DIR", "/nowhere");
  Process run({"/bin/bash", kScript}, options);
  EXPECT_EQ(run.Wait(), 2);
  EXPECT_EQ(run.err, "not built yet: ./dev build\n");
}

}  // namespace
}  // namespace muster::experiment_iris_test
