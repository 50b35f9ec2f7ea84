#include "apps/muster/experiment/submit_experiment.h"

#include <gmock/gmock.h>

namespace muster::submit_experiment_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

TEST(SubmitExperiment, WhatHasNoJobYetNeedsThisMachine) {
  HostSetting pods;
  pods.kubernetes.emplace();
  EXPECT_THAT(GoesOnText("", "4", pods), AllOf(HasSubstr("experiment 4 is submitted;"), HasSubstr("may sleep or go")));
  EXPECT_THAT(GoesOnText("", "4", pods, /*has_no_job=*/true),
              AllOf(HasSubstr("experiment 4 waits to be submitted;"), HasSubstr("this machine must stay on until"),
                    Not(HasSubstr("sleep"))));
}

}  // namespace
}  // namespace muster::submit_experiment_test
