#include "muster/launch/engines/slurm/step_gpus.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::step_gpus_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty, ::testing::Pair;

constexpr char kShown[] =
    "JobId=16 ArrayJobId=16 ArrayTaskId=1 JobName=x\n"
    "   NodeList=n9\n"
    "     Nodes=n9 CPU_IDs=0 Mem=0 GRES=gpu:8(IDX:0-7)\n"
    "\n"
    "JobId=17 ArrayJobId=16 ArrayTaskId=2 JobName=x\n"
    "   NodeList=n[1-4] TresPerTask=gres:gpu:1\n"
    "     Nodes=n[1-2] CPU_IDs=0-1 Mem=0 GRES=gpu:2(IDX:0,3)\n"
    "     Nodes=n3 CPU_IDs=0 Mem=0 GRES=gpu:a100:1(IDX:0),gpu:v100:3(IDX:1-3),nic:2\n"
    "     Nodes=n4 CPU_IDs=0 Mem=0 GRES=\n";

TEST(StepGpusTest, EachNodeHasThoseOfItsOwnJob) {
  EXPECT_THAT(ParseGpusOfNodes(kShown, "17"), ElementsAre(Pair("n1", 2), Pair("n2", 2), Pair("n3", 4), Pair("n4", 0)));
  EXPECT_THAT(ParseGpusOfNodes(kShown, "18"), IsEmpty());
}

TEST(StepGpusTest, ScontrolIsAskedOnlyWhereAStepWouldNotGetThemAll) {
  const ScratchFolder scratch;
  scratch.Write("scontrol",
                absl::StrCat("#!/bin/sh\n[ \"$*\" = 'show job --details 17' ] && cat <<END\n", kShown, "END\n"));
  chmod((scratch / "scontrol").c_str(), 0700);
  std::vector<std::string> environment = {absl::StrCat("PATH=", scratch.path(), ":/usr/bin:/bin"), "SLURM_JOB_ID=17",
                                          "SLURM_JOB_NODELIST=n[1-4]"};
  environment.emplace_back("SLURM_GPUS_ON_NODE=2");
  EXPECT_THAT(GpusOfNodes(environment), IsEmpty());
  environment.emplace_back("SLURM_GPUS_PER_TASK=1");
  EXPECT_EQ(GpusOfNodes(environment).size(), 4U);
  environment.front() = "PATH=/nowhere";
  EXPECT_THAT(GpusOfNodes(environment), IsEmpty());
}

}  // namespace
}  // namespace muster::step_gpus_test
