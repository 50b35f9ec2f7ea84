// Real processes are killed, restarted, doubled and interrupted in the middle of training: which of them continue,
// which are refused, with which exit codes, and that no process is left behind. The program is toy_worker. A chief that
// logs every step is never further ahead of the test than the lines its pipe holds, so "in the middle" doesn't depend
// on speed.
#include <gmock/gmock.h>
#include <signal.h>

#include <string>
#include <vector>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/process.h"
#include "tests/process/testing/update_way_flags.h"

namespace muster::failure_test {
namespace {

using ::testing::AnyOf, ::testing::HasSubstr, ::testing::Not;

const std::string kMuster = BinFolder() + "/muster";
const std::vector<std::string> kToy = {BinFolder() + "/toy_worker"};
// For a worker whose log nothing reads.
const std::string kQuiet = "--log_steps=1000000000";

std::string LatestIn(const std::string& directory) {
  const auto latest = LatestCheckpoint(PosixFileSystem(), directory);
  return latest.ok() && *latest ? **latest : std::string(latest.status().message());
}

class FailureTest : public ::testing::TestWithParam<UpdateWay> {
 protected:
  static std::vector<std::string> Toy(const std::vector<std::string>& flags) {
    return Joined(kToy, Joined(FlagsOf(GetParam()), flags));
  }

  const LeftBehind left_behind_;
};

INSTANTIATE_TEST_SUITE_P(Ways, FailureTest, ::testing::ValuesIn(kWays), NameOfWay);

// What doesn't depend on how an update is sent. Some of these tests take seconds, because a lease must expire.
class WholeFailureTest : public FailureTest {};

INSTANTIATE_TEST_SUITE_P(Ways, WholeFailureTest, ::testing::ValuesIn(kWholeWays), NameOfWay);

class FailureByOneWayTest : public ::testing::Test {
 protected:
  const LeftBehind left_behind_;
};

TEST_P(FailureTest, AKilledWorkerStopsNobody) {
  ByHand cluster(2, 2, /*chief=*/true);
  ServingPs ps0(cluster, 0);
  ServingPs ps1(cluster, 1);
  Process doomed(Toy(Joined(cluster.Flags("worker", 1), {"--steps=1000000000"})));
  Process worker(Toy(Joined(cluster.Flags("worker", 0), {"--steps=5000", kQuiet})));
  Process chief(Toy(Joined(cluster.Flags("chief", 0), {"--steps=5000"})));
  doomed.WaitForErr("loss = ");
  doomed.Signal(SIGKILL);
  EXPECT_EQ(doomed.Reap(), 128 + SIGKILL);
  EXPECT_EQ(chief.Wait(), 0) << chief.err;
  EXPECT_EQ(worker.Wait(), 0) << worker.err;
  EXPECT_EQ(ps0.Wait(), 0) << ps0.err;
  EXPECT_EQ(ps1.Wait(), 0) << ps1.err;
  EXPECT_THAT(ps0.err, HasSubstr("training has ended: every task is done"));
}

TEST_P(FailureTest, ARestartedChiefGoesOnWithWhatThePsHold) {
  ByHand cluster(2, 1);
  ScratchFolder model;
  ServingPs ps0(cluster, 0);
  ServingPs ps1(cluster, 1);
  const std::vector<std::string> chief =
      Toy(Joined(cluster.Flags("worker", 0), {"--steps=4000", "--save_steps=500", "--model_dir=" + model.path()}));
  Process first(chief);
  first.WaitForErr("step = 200");
  first.Signal(SIGKILL);
  EXPECT_EQ(first.Reap(), 128 + SIGKILL);
  Process second(chief);
  EXPECT_EQ(second.Wait(), 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("The ps hold the model already: going on with it."));
  EXPECT_THAT(second.err, Not(HasSubstr("Restoring parameters from")));
  EXPECT_THAT(second.err, Not(HasSubstr("step = 1\n")));
  EXPECT_THAT(second.err, HasSubstr("step = 4000"));
  EXPECT_EQ(LatestIn(model.path()), model / "model.ckpt-4000");
  EXPECT_EQ(ps0.Wait(), 0) << ps0.err;
  EXPECT_EQ(ps1.Wait(), 0) << ps1.err;
}

TEST_P(FailureTest, AKilledPsIsWorthRetrying) {
  ByHand cluster(2, 1);
  ServingPs ps0(cluster, 0);
  ServingPs ps1(cluster, 1);
  Process chief(Toy(Joined(cluster.Flags("worker", 0), {"--steps=1000000000", "--patience=1"})));
  chief.WaitForErr("loss = ");
  ps1.Signal(SIGKILL);
  EXPECT_EQ(ps1.Reap(), 128 + SIGKILL);
  EXPECT_EQ(chief.Wait(), 138);
  const std::vector<std::string> errors = After(chief.err, "toy_worker: ");
  ASSERT_EQ(errors.size(), 1);
  EXPECT_THAT(errors[0], HasSubstr("ps:1 (" + cluster.ps_address(1) + ") could not be reached within "));
  ps0.Signal(SIGTERM);
  EXPECT_EQ(ps0.Wait(), 0);
}

TEST_P(WholeFailureTest, ARestartedPsHasLostTheModelAndSaysSo) {
  ByHand cluster(1, 1);
  ServingPs first(cluster, 0);
  Process chief(Toy(Joined(cluster.Flags("worker", 0), {"--steps=1000000000"})));
  chief.WaitForErr("loss = ");
  first.Signal(SIGKILL);
  EXPECT_EQ(first.Reap(), 128 + SIGKILL);
  ServingPs second(cluster, 0);
  EXPECT_EQ(chief.Wait(), 138);
  const std::vector<std::string> errors = After(chief.err, "toy_worker: ");
  ASSERT_EQ(errors.size(), 1);
  EXPECT_THAT(errors[0], HasSubstr("ps:0 (" + cluster.ps_address(0) + "): "));
  EXPECT_THAT(errors[0], HasSubstr("was restarted and has lost "));
  second.Signal(SIGTERM);
  EXPECT_EQ(second.Wait(), 0) << second.err;
}

TEST_F(FailureByOneWayTest, APsThatKeepsItsMemoryToItselfAppliesAllUpdates) {
  ByHand cluster(1, 1);
  const std::vector<std::string> chief_words = Joined(kToy, Joined(cluster.Flags("worker", 0), {"--steps=50"}));
  ServingPs ps(cluster, 0, {"--apply=server"});
  Process insisting(Joined(chief_words, {"--apply=direct"}));
  EXPECT_EQ(insisting.Wait(), 2);
  const std::vector<std::string> errors = After(insisting.err, "toy_worker: ");
  ASSERT_EQ(errors.size(), 1) << insisting.err;
  EXPECT_THAT(errors[0], HasSubstr("direct apply was asked for, but isn't possible: ps:0 ("));
  Process willing(Joined(chief_words, {"--apply=auto"}));
  EXPECT_EQ(willing.Wait(), 0) << willing.err;
  EXPECT_THAT(willing.err, HasSubstr("the ps apply the updates of worker:0: ps:0 ("));
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
}

TEST_F(FailureByOneWayTest, APsThatComesBackWithoutAWayInAppliesTheUpdatesFromThenOn) {
  ByHand cluster(1, 1);
  ScratchFolder model;
  ServingPs first(cluster, 0);
  Process chief(Joined(kToy, Joined(cluster.Flags("worker", 0), {"--apply=auto", "--steps=4000", "--save_steps=100",
                                                                 "--model_dir=" + model.path()})));
  chief.WaitForErr("step = 200");
  first.Signal(SIGKILL);
  EXPECT_EQ(first.Reap(), 128 + SIGKILL);
  ServingPs second(cluster, 0, {"--apply=server"});
  EXPECT_EQ(chief.Wait(), 0) << chief.err;
  EXPECT_THAT(chief.err, HasSubstr("worker:0 applies its updates itself"));
  EXPECT_THAT(chief.err, HasSubstr("Restoring parameters from " + model.path()));
  EXPECT_THAT(chief.err, HasSubstr("the ps apply the updates of worker:0: ps:0 ("));
  EXPECT_EQ(LatestIn(model.path()), model / "model.ckpt-4000");
  EXPECT_EQ(second.Wait(), 0) << second.err;
}

TEST_P(WholeFailureTest, AWorkerOfAnotherJobIsRefusedAndTrainingGoesOn) {
  ByHand cluster(1, 2);
  const auto with_token = [](const std::string& token) {
    return ProcessOptions{.environment = {{"MUSTER_JOB_TOKEN", token}}};
  };
  ServingPs ps(cluster, 0, {}, with_token("the token of one job"));
  Process chief(Toy(Joined(cluster.Flags("worker", 0), {"--steps=3000"})), with_token("the token of one job"));
  chief.WaitForErr("loss = ");
  Process stranger(Toy(cluster.Flags("worker", 1)), with_token("the token of another job"));
  EXPECT_EQ(stranger.Wait(), 1);
  const std::vector<std::string> errors = After(stranger.err, "toy_worker: ");
  ASSERT_EQ(errors.size(), 1) << stranger.err;
  EXPECT_THAT(errors[0], HasSubstr("ps:0 (" + cluster.ps_address(0) + ")"));
  EXPECT_THAT(errors[0], HasSubstr("token"));
  Process nobody(Toy(cluster.Flags("worker", 1)));  // without any
  EXPECT_EQ(nobody.Wait(), 1);
  EXPECT_EQ(chief.Wait(), 0);
  EXPECT_THAT(chief.err, HasSubstr("step = 3000"));
  ps.Signal(SIGTERM);  // worker 1 never came, and might still come
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
}

TEST_P(FailureTest, AWorkerThatIsInterruptedEndsInOrderAndTheOthersGoOn) {
  ByHand cluster(2, 2);
  ScratchFolder model;
  ServingPs ps0(cluster, 0);
  ServingPs ps1(cluster, 1);
  Process worker(Toy(Joined(cluster.Flags("worker", 1), {"--steps=1000000000"})));
  Process chief(Toy(Joined(cluster.Flags("worker", 0), {"--steps=1000000000", "--model_dir=" + model.path()})));
  worker.WaitForErr("loss = ");
  worker.Signal(SIGTERM);
  EXPECT_EQ(worker.Wait(), 0) << worker.err;
  chief.WaitForErr("loss = ");
  chief.Signal(SIGINT);
  EXPECT_EQ(chief.Wait(), 0);
  const size_t saved = chief.err.rfind("Saving checkpoints for ");
  EXPECT_THAT(chief.err.substr(saved), HasSubstr(LatestIn(model.path()) + "."));
  EXPECT_EQ(ps0.Wait(), 0) << ps0.err;
  EXPECT_EQ(ps1.Wait(), 0) << ps1.err;
  EXPECT_THAT(ps0.err, HasSubstr("training has ended: every task is done"));
}

// With a patience of a minute, the default: an interrupted process doesn't wait for the end of it. It may be in a step
// when it notices, or at its last checkpoint.
TEST_P(FailureTest, WhoIsInterruptedWhileAPsIsGoneEndsAndNamesIt) {
  ByHand cluster(2, 1);
  ScratchFolder model;
  ServingPs ps0(cluster, 0);
  ServingPs ps1(cluster, 1);
  Process chief(Toy(Joined(cluster.Flags("worker", 0),
                           {"--steps=1000000000", "--stop_patience=0.1", "--model_dir=" + model.path()})));
  chief.WaitForErr("loss = ");
  ps1.Signal(SIGKILL);
  EXPECT_EQ(ps1.Reap(), 128 + SIGKILL);
  chief.Signal(SIGTERM);
  EXPECT_EQ(chief.Wait(), 130) << chief.err;
  const std::vector<std::string> errors = After(chief.err, "toy_worker: ");
  ASSERT_EQ(errors.size(), 1) << chief.err;
  EXPECT_THAT(errors[0], HasSubstr("interrupted, and ended without a ps that is gone: ps:1 (" + cluster.ps_address(1)));
  EXPECT_EQ(ps0.Wait(), 0) << "it has heard that its only worker is done: " << ps0.err;
}

TEST_P(WholeFailureTest, TheSecondSignalEndsAtOnceWhoWaitsForAPsThatIsGone) {
  ByHand cluster(1, 1);
  ServingPs ps(cluster, 0);
  Process chief(Toy(Joined(cluster.Flags("worker", 0), {"--steps=1000000000", "--stop_patience=1000"})));
  chief.WaitForErr("loss = ");
  ps.Signal(SIGKILL);
  EXPECT_EQ(ps.Reap(), 128 + SIGKILL);
  chief.Signal(SIGINT);
  chief.WaitForErr("a stop was asked for; ps:0 (" + cluster.ps_address(0) + ") is given 16m40s to answer");
  chief.Signal(SIGINT);
  EXPECT_EQ(chief.Wait(), 128 + SIGINT);
}

TEST_P(WholeFailureTest, ASecondChiefIsRefusedByName) {
  ByHand cluster(1, 2);
  ServingPs ps(cluster, 0);
  // Users write this: is_chief = (task_index == task_index).
  Process first(Toy(Joined(cluster.Flags("worker", 0), {"--steps=3000", "--is_chief=true"})));
  first.WaitForErr("loss = ");
  Process second(Toy(Joined(cluster.Flags("worker", 1), {"--is_chief=true"})));
  EXPECT_EQ(second.Wait(), 1);
  const std::vector<std::string> errors = After(second.err, "toy_worker: ");
  ASSERT_EQ(errors.size(), 1) << second.err;
  EXPECT_THAT(errors[0], HasSubstr("worker:1 says it is the chief, but worker:0 ("));
  EXPECT_THAT(errors[0], HasSubstr("pid " + std::to_string(first.pid()) + ") is the chief and alive"));
  EXPECT_EQ(first.Wait(), 0) << first.err;
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
}

TEST_P(WholeFailureTest, TheSameTaskTwiceIsRefused) {
  ByHand cluster(1, 1);
  ServingPs ps(cluster, 0);
  const std::vector<std::string> chief = Toy(Joined(cluster.Flags("worker", 0), {"--steps=3000"}));
  Process first(chief);
  first.WaitForErr("loss = ");
  Process second(Joined(chief, {"--lease=1"}));  // it waits for a lease to expire, in case the first has died
  EXPECT_EQ(second.Wait(), 1);
  const std::vector<std::string> errors = After(second.err, "toy_worker: ");
  ASSERT_EQ(errors.size(), 1) << second.err;
  EXPECT_THAT(errors[0], HasSubstr("worker:0 is already running ("));
  EXPECT_THAT(errors[0], HasSubstr("pid " + std::to_string(first.pid()) + ")"));
  EXPECT_EQ(first.Wait(), 0) << first.err;
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
}

TEST_P(FailureTest, CtrlCOnMusterRunSavesAndEndsEverybody) {
  ScratchFolder model;
  const std::vector<std::string> run_words = {kMuster,   "run", "--ps",        "2",           "--workers",  "2",
                                              "--chief", "1",   "--muster-ps", "--model_dir", model.path(), "--"};
  Process run(Joined(run_words, Toy({"--steps=1000000000"})));
  run.WaitForErr("[chief:0] ");
  run.WaitForErr("step = 500");
  const std::string run_id = After(run.err, "[muster] run ").at(0);
  EXPECT_EQ(ProcessesWith("MUSTER_RUN_ID=" + run_id).size(), 5);
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 0);
  EXPECT_THAT(run.err, HasSubstr("interrupted: ending"));
  EXPECT_THAT(run.err, Not(HasSubstr("first failure")));
  EXPECT_THAT(run.err, Not(AnyOf(HasSubstr("was killed"), HasSubstr("[muster] killed"))));
  const size_t saved = run.err.rfind("Saving checkpoints for ");
  EXPECT_GT(saved, run.err.find("interrupted: ending"));
  EXPECT_THAT(run.err.substr(saved), HasSubstr(LatestIn(model.path()) + "."));
  EXPECT_GT(LatestIn(model.path()), model / "model.ckpt-0");
  EXPECT_THAT(ProcessesWith("MUSTER_RUN_ID=" + run_id), testing::IsEmpty());
}

}  // namespace
}  // namespace muster::failure_test
