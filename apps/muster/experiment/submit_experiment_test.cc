#include "apps/muster/experiment/submit_experiment.h"

#include <gmock/gmock.h>

namespace muster::submit_experiment_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not, ::testing::StartsWith;

TEST(SubmitExperimentTest, AJobThatHasBegunRuns) {
  HostSetting slurm;
  slurm.slurm.emplace();
  EXPECT_THAT(GoesOnText("", "4", slurm, JobStage::kSubmitted),
              StartsWith("experiment 4 is submitted; muster logs 4 -f"));
  EXPECT_THAT(GoesOnText("", "4", slurm, JobStage::kBegun), StartsWith("experiment 4 is running; muster logs 4 -f"));
  EXPECT_THAT(GoesOnText("", "4", {}, JobStage::kSubmitted), StartsWith("experiment 4 is running; "));
}

TEST(SubmitExperimentTest, WhatHasNoJobYetNeedsThisMachine) {
  HostSetting pods;
  pods.kubernetes.emplace();
  EXPECT_THAT(GoesOnText("", "4", pods, JobStage::kSubmitted),
              AllOf(HasSubstr("experiment 4 is submitted;"), HasSubstr("may sleep or go")));
  EXPECT_THAT(GoesOnText("", "4", pods, JobStage::kNone),
              AllOf(HasSubstr("experiment 4 waits to be submitted;"), HasSubstr("this machine must stay on until"),
                    Not(HasSubstr("sleep"))));
}

}  // namespace
}  // namespace muster::submit_experiment_test
