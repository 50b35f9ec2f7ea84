// A whole asynchronous run whose processes are killed repeatedly with SIGKILL, while every update adds one to every
// element: in the end each element is what the acknowledged updates give. Under the launcher every process is started
// again; by hand, all continue from the last checkpoint.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/killed_run.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/process.h"
#include "tests/process/testing/update_way_flags.h"

namespace muster::survival_test {
namespace {

using ::testing::Each, ::testing::HasSubstr;

constexpr int64_t kWidth = 40000;  // three stripes
// A worker that applies its own updates is faster, and must be killed in the middle of one.
constexpr int64_t kDirectWidth = 500000;
constexpr int64_t kStripe = 16 << 10;

class KilledRunTest : public ::testing::TestWithParam<UpdateWay> {
 protected:
  static bool direct() { return GetParam().direct(); }
  static int64_t width() { return direct() ? kDirectWidth : kWidth; }
  static std::vector<std::string> flags() { return Joined(FlagsOf(GetParam()), {"--log_steps=10"}); }

  const LeftBehind left_behind_;
};

// With one worker there is no update while the last checkpoint is made: every element is exact.
TEST_P(KilledRunTest, KilledPsLoseNoUpdateAndDoNoneTwice) {
  KilledRun run(1, width(), flags());
  for (int i = 0; i < 6; ++i) run.Kill(i % 2 == 0 ? "ps:0" : "ps:1");
  EXPECT_EQ(run.End(), 0) << run.log();
  const FinalValues final = run.ReadFinal();
  EXPECT_GT(final.global_step, 60);
  EXPECT_THAT(final.w, Each(1.0f + static_cast<float>(final.global_step)));
  EXPECT_THAT(final.b, Each(1.0f + static_cast<float>(final.global_step)));
  EXPECT_THAT(run.log(), HasSubstr("found the model of an earlier life"));
  if (direct()) {
    EXPECT_THAT(run.log(), HasSubstr("applies its updates itself"));
  }
}

// As when its host is shut down. It serves the others for a while, which go on.
TEST(SurvivalTest, APsThatIsToldToEndAloneLeavesTrainingToItsNextStart) {
  const LeftBehind left_behind;
  KilledRun run(1, kWidth, {"--log_steps=10"});
  run.Terminate("ps:1");
  EXPECT_EQ(run.End(), 0) << run.log();
  EXPECT_THAT(run.log(), HasSubstr("it serves them for 10s more, in which they may end, too"));
  const FinalValues final = run.ReadFinal();
  EXPECT_THAT(final.w, Each(1.0f + static_cast<float>(final.global_step)));
}

// A worker that is killed between two ps leaves an update that one of them has and that was never counted: at most one
// per death, and whole. If it applied the update itself or sent it in parts, whole stripes are left.
TEST_P(KilledRunTest, KilledWorkersAndPsTogether) {
  KilledRun run(2, width(), flags());
  const std::vector<std::string> victims = {"worker:1", "ps:0", "worker:0", "ps:1"};
  for (int i = 0; i < 8; ++i) run.Kill(victims[i % 4]);
  const int killed_workers = 4;
  EXPECT_EQ(run.End(), 0) << run.log();
  const FinalValues final = run.ReadFinal();
  EXPECT_GT(final.global_step, 80);
  for (const std::vector<float>& values : {final.w, final.b}) {
    const size_t whole = direct() || GetParam().sending != Sending::kWhole ? kStripe : values.size();
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

TEST(Survival, APsStartedAgainByHandGoesOnFromTheLastCheckpoint) {
  const LeftBehind left_behind;
  ByHand cluster(2, 2);
  ScratchFolder model;
  const std::vector<std::string> flags = {"--steps=3000", "--save_steps=100", "--width=40000",
                                          "--model_dir=" + model.path()};
  ServingPs ps0(cluster, 0);
  ServingPs ps1(cluster, 1);
  Process worker(
      Joined(ToyThatCounts(), Joined(cluster.Flags("worker", 1), Joined(flags, {"--log_steps=1000000000"}))));
  Process chief(Joined(ToyThatCounts(), Joined(cluster.Flags("worker", 0), flags)));
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
  const FinalValues final = ReadFinal(model.path(), kWidth);
  EXPECT_GE(final.global_step, 3000);
}

}  // namespace
}  // namespace muster::survival_test
