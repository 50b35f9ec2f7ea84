// Workers that train by all-reduce, without ps, are killed with SIGKILL in the middle of training. Under `muster run`
// all are started again from the last checkpoint; every round adds one to every element, so the loss of a step and the
// last checkpoint are predictable, however many have died. Started by hand, the other workers end and name the dead
// one. Nothing is left behind. A run whose log isn't read is never further ahead than the lines a pipe holds.
#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/process.h"

namespace muster::all_reduce_kill_test {
namespace {

using ::testing::Each, ::testing::HasSubstr, ::testing::IsEmpty;

const std::string kMuster = BinFolder() + "/muster";
const std::string kToy = BinFolder() + "/toy_worker";
constexpr int kWorkers = 3;
constexpr int64_t kSteps = 5000;
constexpr int64_t kWidth = 40000;

// Instances differ by the ranks' transport.
class AllReduceKillTest : public ::testing::TestWithParam<std::string> {
 protected:
  static std::vector<std::string> Toy(int64_t steps, const std::string& model_dir) {
    return {kToy,
            "--all_reduce",
            "--gradient=-1",
            "--learning_rate=1",
            "--save_steps=100",
            absl::StrCat("--transport=", GetParam() == "ring" ? "tcp" : "auto"),
            absl::StrCat("--steps=", steps),
            absl::StrCat("--width=", kWidth),
            absl::StrCat("--model_dir=", model_dir)};
  }

  const LeftBehind left_behind_;
};

// Returns the process of the task's latest life.
pid_t PidOf(const std::string& log, const std::string& task) {
  pid_t pid = -1;
  // Uses whole lines only.
  for (const std::string& says : After(log.substr(0, log.rfind('\n') + 1), "[muster] " + task)) {
    const size_t at = says.find(" is process ");
    if (at == 0 || says.rfind(" (the chief) is process ", 0) == 0) pid = std::atoi(says.c_str() + at + 12);
  }
  EXPECT_GT(pid, 0) << log;
  return pid;
}

// Checks all lives of the chief: the loss is what each element was before the step.
void ExpectOneCurve(const std::string& log) {
  int lines = 0;
  for (const std::string& line : After(log, "[worker:0] ")) {
    const size_t loss_at = line.find("loss = "), step_at = line.find("step = ");
    if (loss_at == std::string::npos || step_at == std::string::npos) continue;
    EXPECT_EQ(std::atoi(line.c_str() + loss_at + 7), std::atoi(line.c_str() + step_at + 7)) << line;
    ++lines;
  }
  EXPECT_GT(lines, 100) << log;
}

void ExpectFinal(const std::string& directory) {
  const auto latest = LatestCheckpoint(PosixFileSystem(), directory);
  ASSERT_TRUE(latest.ok() && *latest) << latest.status();
  const auto checkpoint = CheckpointReader::Open(PosixFileSystem(), **latest).value();
  std::vector<float> w(kWidth);
  EXPECT_EQ(checkpoint->manifest().global_step, kSteps);
  ASSERT_TRUE(checkpoint->ReadVariable("w", AsMutableBytes(w.data(), w.size())).ok());
  EXPECT_THAT(w, Each(1.0F + kSteps));
}

TEST_P(AllReduceKillTest, AllGoOnFromTheLastCheckpoint) {
  ScratchFolder model;
  Process run(Joined({kMuster, "run", "--ps", "0", "--workers", absl::StrCat(kWorkers), "--model_dir", model.path(),
                      "--max-restarts", "1000", "--"},
                     Toy(kSteps, model.path())));
  run.WaitForErr("loss = ");
  for (const std::string victim : {"worker:1", "worker:0", "worker:2"}) {
    const pid_t pid = PidOf(run.err, victim);
    ASSERT_GT(pid, 0);
    const size_t before = run.err.size();
    kill(pid, SIGKILL);
    const size_t killed = run.WaitForErr(victim + " was killed by signal 9", before);
    const size_t restored = run.WaitForErr("Restoring parameters from " + model.path(), killed);
    // The chief goes on, so all workers are in their new lives.
    run.WaitForErr("loss = ", run.WaitForErr("loss = ", restored) + 1);
  }
  EXPECT_EQ(run.Wait(), 0) << run.err;
  ExpectOneCurve(run.err);
  ExpectFinal(model.path());
  const std::string run_id = After(run.err, "[muster] run ").at(0);
  EXPECT_THAT(ProcessesWith("MUSTER_RUN_ID=" + run_id), IsEmpty());
}

TEST_P(AllReduceKillTest, WithoutRestartsTheOthersEndAndSayWhoIsGone) {
  ByHand cluster(0, kWorkers);
  ScratchFolder model;
  const std::vector<std::string> toy = Toy(1000000000, model.path());
  const std::vector<std::string> quiet = {"--log_steps=1000000000"};
  Process victim(Joined(toy, Joined(cluster.Flags("worker", 2), quiet)));
  Process worker(Joined(toy, Joined(cluster.Flags("worker", 1), quiet)));
  Process chief(Joined(toy, cluster.Flags("worker", 0)));
  chief.WaitForErr("loss = ");
  victim.Signal(SIGKILL);
  EXPECT_EQ(victim.Reap(), 128 + SIGKILL);
  for (Process* survivor : {&chief, &worker}) {
    EXPECT_EQ(survivor->Wait(), 138) << survivor->err;
    const std::vector<std::string> errors = After(survivor->err, "toy_worker: ");
    ASSERT_EQ(errors.size(), 1) << survivor->err;
    EXPECT_THAT(errors[0], HasSubstr("worker:2 has died"));
  }
}

INSTANTIATE_TEST_SUITE_P(Through, AllReduceKillTest, ::testing::Values("shm", "ring"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster::all_reduce_kill_test
