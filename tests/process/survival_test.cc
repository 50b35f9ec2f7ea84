// A whole run whose processes are killed with SIGKILL again and again while every update adds one to every element: in
// the end each element is what the acknowledged updates make it, or, of a synchronous run, the rounds. The launcher
// starts everybody again; by hand it is the last checkpoint from which all go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "muster/base/file_system.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "tests/process/by_hand.h"
#include "tests/process/process.h"
#include "tests/process/toy_way.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

const std::string kMuster = MUSTER_BIN_DIR "/muster";
const std::vector<std::string> kToy = {MUSTER_BIN_DIR "/toy_worker", "--gradient=-1", "--learning_rate=1"};
constexpr int64_t kWidth = 40000;  // three stripes
// A worker that applies its updates itself is faster, and is to be killed in the middle of one.
constexpr int64_t kDirectWidth = 500000;
constexpr int64_t kStripe = 16 << 10;

// What the last checkpoint of a directory says.
struct Final {
  int64_t global_step = 0;
  std::vector<float> w;
  std::vector<float> b = std::vector<float>(2);
};

Final ReadFinal(const std::string& directory, int64_t width = kWidth) {
  Final final;
  final.w.resize(width);
  const auto latest = LatestCheckpoint(PosixFileSystem(), directory);
  EXPECT_TRUE(latest.ok() && *latest) << latest.status();
  if (!latest.ok() || !*latest) return final;
  const auto checkpoint = CheckpointReader::Open(PosixFileSystem(), **latest);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (!checkpoint.ok()) return final;
  final.global_step = (*checkpoint)->manifest().global_step;
  EXPECT_TRUE((*checkpoint)->ReadVariable("w", AsMutableBytes(final.w.data(), final.w.size())).ok());
  EXPECT_TRUE((*checkpoint)->ReadVariable("b", AsMutableBytes(final.b.data(), final.b.size())).ok());
  return final;
}

// `muster run` of two ps and some workers, the first of which is the chief.
class KilledRun {
 public:
  KilledRun(int workers, int64_t steps, int64_t width, const std::vector<std::string>& flags)
      : width_(width),
        run_(Joined(
            {kMuster, "run", "--ps", "2", "--workers", std::to_string(workers), "--muster-ps", "--model_dir",
             model_.path(), "--max-restarts", "1000", "--"},
            Joined(kToy, Joined({"--steps=" + std::to_string(steps), "--width=" + std::to_string(width_)}, flags)))) {}

  // Kills the task and waits until it has been started again and the chief has gone on by some steps.
  void Kill(const std::string& task) {
    kill(PidOf(task), SIGKILL);
    run_.WaitForErr(task + " was killed by signal 9");
    run_.WaitForErr(task + " is process ");
  }
  void WaitForSteps() { run_.WaitForErr("[worker:0] "), run_.WaitForErr("loss = "); }
  int Wait() { return run_.Wait(); }
  const std::string& log() const { return run_.err; }
  Final ReadFinal() const { return muster::ReadFinal(model_.path(), width_); }

 private:
  pid_t PidOf(const std::string& task) {
    const std::string says = "[muster] " + task + (task == "worker:0" && lives_++ == 0 ? " (the chief)" : "");
    const std::vector<std::string> lines = After(run_.err, says + " is process ");
    EXPECT_FALSE(lines.empty()) << run_.err;
    return lines.empty() ? -1 : std::atoi(lines.back().c_str());
  }

  ScratchDirectory model_;
  const int64_t width_;
  Process run_;
  int lives_ = 0;  // of worker:0
};

class KilledRunTest : public ::testing::TestWithParam<Way> {
 protected:
  static bool direct() { return GetParam().direct(); }
  static int64_t width() { return direct() ? kDirectWidth : kWidth; }
  static std::vector<std::string> flags() { return Joined(FlagsOf(GetParam()), {"--log_steps=10"}); }
};

// With one worker nobody updates while the last checkpoint is made: every element is exact.
TEST_P(KilledRunTest, KilledPsLoseNoUpdateAndDoNoneTwice) {
  KilledRun run(1, 3000, width(), flags());
  for (int i = 0; i < 12; ++i) {
    run.WaitForSteps();
    run.Kill(i % 2 == 0 ? "ps:0" : "ps:1");
  }
  EXPECT_EQ(run.Wait(), 0) << run.log();
  const Final final = run.ReadFinal();
  EXPECT_EQ(final.global_step, 3000);
  EXPECT_THAT(final.w, Each(1.0f + static_cast<float>(final.global_step)));
  EXPECT_THAT(final.b, Each(1.0f + static_cast<float>(final.global_step)));
  EXPECT_THAT(run.log(), HasSubstr("found the model of an earlier life"));
  if (direct()) {
    EXPECT_THAT(run.log(), HasSubstr("applies its updates itself"));
  }
}

// A worker that is killed between two ps leaves an update that one of them has and that was never counted: no more than
// one a death, and whole; one that applied it itself leaves whole stripes.
TEST_P(KilledRunTest, KilledWorkersAndPsTogether) {
  KilledRun run(2, 4000, width(), flags());
  const std::vector<std::string> victims = {"worker:1", "ps:0", "worker:0", "ps:1"};
  int killed_workers = 0;
  for (int i = 0; i < 12; ++i) {
    run.WaitForSteps();
    run.Kill(victims[i % 4]);
    killed_workers += i % 2 == 0 ? 1 : 0;
  }
  EXPECT_EQ(run.Wait(), 0) << run.log();
  const Final final = run.ReadFinal();
  EXPECT_GE(final.global_step, 4000);
  for (const std::vector<float>& values : {final.w, final.b}) {
    const size_t whole = direct() ? kStripe : values.size();
    for (size_t from = 0; from < values.size(); from += whole) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(from);
      const std::vector<float> part(first, first + static_cast<std::ptrdiff_t>(std::min(whole, values.size() - from)));
      EXPECT_THAT(part, Each(part[0]));
      EXPECT_GE(part[0], 1.0f + static_cast<float>(final.global_step));
      EXPECT_LE(part[0], 1.0f + static_cast<float>(final.global_step + killed_workers));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, KilledRunTest, ::testing::ValuesIn(kWays), NameOfWay);

// Every round adds one, whoever is in it: the cut of the last checkpoint is at a round, so every element is exact.
TEST(Survival, SynchronousWorkersThatApplyThemselvesAndTheirPs) {
  KilledRun run(2, 4000, kDirectWidth, {"--aggregate=2", "--elastic", "--apply=auto", "--log_steps=10"});
  const std::vector<std::string> victims = {"worker:1", "ps:0", "worker:0", "ps:1"};
  for (int i = 0; i < 12; ++i) {
    run.WaitForSteps();
    run.Kill(victims[i % 4]);
  }
  EXPECT_EQ(run.Wait(), 0) << run.log();
  const Final final = run.ReadFinal();
  EXPECT_GE(final.global_step, 4000);
  EXPECT_THAT(final.w, Each(1.0f + static_cast<float>(final.global_step)));
  EXPECT_THAT(final.b, Each(1.0f + static_cast<float>(final.global_step)));
  EXPECT_THAT(run.log(), HasSubstr("applies its updates itself"));
}

TEST(Survival, APsStartedAgainByHandGoesOnFromTheLastCheckpoint) {
  ByHand cluster(2, 2);
  ScratchDirectory model;
  const std::vector<std::string> flags = {"--steps=3000", "--save_steps=100", "--width=40000",
                                          "--model_dir=" + model.path()};
  ServingPs ps0(cluster, 0);
  ServingPs ps1(cluster, 1);
  Process worker(Joined(kToy, Joined(cluster.Flags("worker", 1), Joined(flags, {"--log_steps=1000000000"}))));
  Process chief(Joined(kToy, Joined(cluster.Flags("worker", 0), flags)));
  chief.WaitForErr("Saving checkpoints for 1");
  chief.WaitForErr("loss = ");
  ps1.Signal(SIGKILL);
  EXPECT_EQ(ps1.Reap(), 128 + SIGKILL);
  ServingPs second(cluster, 1);
  EXPECT_EQ(chief.Wait(), 0) << chief.err;
  EXPECT_EQ(worker.Wait(), 0) << worker.err;
  EXPECT_EQ(ps0.Wait(), 0) << ps0.err;
  EXPECT_EQ(second.Wait(), 0) << second.err;
  EXPECT_THAT(chief.err, HasSubstr("Restoring parameters from " + model.path()));
  EXPECT_THAT(chief.err, HasSubstr("steps are lost"));
  const Final final = ReadFinal(model.path());
  EXPECT_GE(final.global_step, 3000);
}

// Who contributes to a round of a synchronous run and who is dead: N of three workers, three of them or a backup worker
// beside two, or as many as there are; and through what. (Workers that apply themselves: above.)
struct Gate {
  const char* name;
  int aggregate;
  bool elastic;
  const char* transport;

  std::vector<std::string> Flags() const {
    std::vector<std::string> flags = {"--aggregate=" + std::to_string(aggregate),
                                      std::string("--transport=") + transport};
    if (elastic) flags.emplace_back("--elastic");
    return flags;
  }
};

// Their log, unread, is more than pipes and launcher hold.
constexpr int64_t kSteps = 6000;

class SynchronousRunTest : public ::testing::TestWithParam<Gate> {};

// ps 0 has `w` and counts the rounds: each element is as many means further, however many have died. On ps 1 a round
// may have had nobody, if one of its contributors died between the two ps.
void ExpectOneMeanARound(const Final& final, int killed_workers) {
  const float whole = 1.0f + static_cast<float>(final.global_step);
  EXPECT_THAT(final.w, Each(whole));
  EXPECT_THAT(final.b, Each(final.b[0]));
  EXPECT_GE(final.b[0], whole - static_cast<float>(killed_workers));
  EXPECT_LE(final.b[0], whole);
}

// A worker that dies for good, and nobody starts it again. It logs every step as the chief does, and nobody reads what
// it logs: no round is without one of those two, so the run is in the middle when it dies, however fast it is.
TEST_P(SynchronousRunTest, GoesOnWithoutADeadWorkerToTheLastStep) {
  ByHand cluster(2, 3);
  ScratchDirectory model;
  const std::vector<std::string> flags =
      Joined({"--steps=" + std::to_string(kSteps), "--width=" + std::to_string(kWidth), "--model_dir=" + model.path()},
             GetParam().Flags());
  ServingPs ps0(cluster, 0);
  ServingPs ps1(cluster, 1);
  Process worker(Joined(kToy, Joined(cluster.Flags("worker", 1), Joined(flags, {"--log_steps=1000000000"}))));
  Process victim(Joined(kToy, Joined(cluster.Flags("worker", 2), flags)));
  Process chief(Joined(kToy, Joined(cluster.Flags("worker", 0), flags)));
  chief.WaitForErr("loss = ");
  victim.WaitForErr("loss = ");
  victim.Signal(SIGKILL);
  EXPECT_EQ(victim.Reap(), 128 + SIGKILL);
  EXPECT_EQ(chief.Wait(), 0) << chief.err;
  EXPECT_EQ(worker.Wait(), 0) << worker.err;
  EXPECT_EQ(ps0.Wait(), 0) << ps0.err;
  EXPECT_EQ(ps1.Wait(), 0) << ps1.err;
  const Final final = ReadFinal(model.path());
  EXPECT_EQ(final.global_step, kSteps);
  ExpectOneMeanARound(final, 1);
}

// Who starts again on its memory knows the round that was being collected, and who was in it.
TEST_P(SynchronousRunTest, KilledPsLoseNoRoundAndMakeNoneTwice) {
  KilledRun run(3, kSteps, kWidth, Joined(GetParam().Flags(), {"--log_steps=1"}));
  for (int i = 0; i < 8; ++i) {
    run.WaitForSteps();
    run.Kill(i % 2 == 0 ? "ps:0" : "ps:1");
  }
  EXPECT_EQ(run.Wait(), 0) << run.log();
  const Final final = run.ReadFinal();
  EXPECT_EQ(final.global_step, kSteps);
  ExpectOneMeanARound(final, 0);
  EXPECT_THAT(run.log(), HasSubstr("found the model of an earlier life"));
}

// A worker that comes back when training is nearly over makes a round more.
TEST_P(SynchronousRunTest, KilledWorkersAndPsTogether) {
  KilledRun run(3, kSteps, kWidth, Joined(GetParam().Flags(), {"--log_steps=1"}));
  const std::vector<std::string> victims = {"worker:1", "ps:0", "worker:2", "ps:1", "worker:0"};
  int killed_workers = 0;
  for (int i = 0; i < 10; ++i) {
    run.WaitForSteps();
    run.Kill(victims[i % 5]);
    killed_workers += i % 5 % 2 == 0 ? 1 : 0;
  }
  EXPECT_EQ(run.Wait(), 0) << run.log();
  const Final final = run.ReadFinal();
  EXPECT_GE(final.global_step, kSteps);
  ExpectOneMeanARound(final, killed_workers);
}

INSTANTIATE_TEST_SUITE_P(Gates, SynchronousRunTest,
                         ::testing::Values(Gate{"BackupWorkerInSharedMemory", 2, false, "auto"},
                                           Gate{"ElasticOverTcp", 3, true, "tcp"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace muster
