#include "apps/muster/experiment/submit_experiment.h"

#include <gmock/gmock.h>

namespace muster::submit_experiment_test {
namespace {

using ::testing::StartsWith;

TEST(SubmitExperimentTest, AJobThatHasBegunRuns) {
  HostSetting slurm;
  slurm.slurm.emplace();
  EXPECT_THAT(GoesOnText("", "4", slurm, /*has_begun=*/false),
              StartsWith("experiment 4 is submitted; muster logs 4 -f"));
  EXPECT_THAT(GoesOnText("", "4", slurm, /*has_begun=*/true), StartsWith("experiment 4 is running; muster logs 4 -f"));
  EXPECT_THAT(GoesOnText("", "4", {}, /*has_begun=*/false), StartsWith("experiment 4 is running; "));
}

}  // namespace
}  // namespace muster::submit_experiment_test
