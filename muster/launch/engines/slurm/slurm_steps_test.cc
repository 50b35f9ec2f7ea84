// The end of steps with an srun that a test plays: a script that doesn't end when it is asked to.
#include "muster/launch/engines/slurm/slurm_steps.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::slurm_steps_test {
namespace {

TEST(SlurmStepsTest, AStepThatDoesNotEndWhenAskedIsKilledBySlurm) {
  const ScratchFolder folder;
  ASSERT_EQ(mkfifo((folder / "gate").c_str(), 0600), 0);
  folder.Write("srun", absl::StrCat("#!/bin/sh\ncd ", folder.path(),
                                    "\ntrap '' TERM\ntrap 'echo quit >>signals; exit 0' QUIT\n"
                                    "exec 3<>gate\n: >ready\nwhile :; do read -r line <&3; done\n"));
  std::filesystem::permissions(folder / "srun", std::filesystem::perms::owner_all);
  FdLoop loop(RealClock());
  {
    SlurmSteps steps(
        {.muster = "muster", .job = "job-1", .rendezvous = "r"},
        {absl::StrCat("PATH=", folder.path(), ":/usr/bin:/bin")}, loop, RealClock(),
        {.by_themselves = absl::ZeroDuration(), .asked = absl::ZeroDuration(), .killed = absl::Minutes(1)});
    ASSERT_TRUE(steps.StartAll({"n1"}).ok());
    while (!folder.Has("ready")) sched_yield();
  }
  EXPECT_EQ(folder.Read("signals"), "quit\n");
}

}  // namespace
}  // namespace muster::slurm_steps_test
