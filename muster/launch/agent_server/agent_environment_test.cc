#include "muster/launch/agent_server/agent_environment.h"

#include <gmock/gmock.h>

namespace muster::agent_environment_test {
namespace {

using ::testing::ElementsAre;

TEST(AgentEnvironmentTest, TasksGetNothingOfTheLoginAndOfMuster) {
  EXPECT_THAT(TaskEnvironment({"PATH=/bin", "SSH_AUTH_SOCK=/tmp/x", "SSH_CONNECTION=a 1 b 2", "MUSTER_RUN_ID=7",
                               "NOT_MUSTER_=1", "MUSTER_HOME=/kept", "HOME=/root"},
                              "/copy"),
              ElementsAre("NOT_MUSTER_=1", "MUSTER_HOME=/kept", "HOME=/root", "PATH=/copy:/bin"));
}

TEST(AgentEnvironmentTest, TasksLearnOfSlurmsJobAndNotOfTheAgentsStep) {
  EXPECT_THAT(TaskEnvironment(
                  {"SLURM_JOB_ID=7", "SLURM_JOBID=7", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_PROCID=1", "SLURM_NTASKS=2",
                   "SLURM_CPUS_ON_NODE=4", "SLURM_STEP_ID=3", "SLURM_LOCALID=0", "SRUN_DEBUG=3", "SLURMD_NODENAME=n2",
                   "SLURM_CONF=/x", "SLURM_ARRAY_TASK_ID=4", "CUDA_VISIBLE_DEVICES=2,3", "PATH=/bin"},
                  "/copy"),
              ElementsAre("SLURM_JOB_ID=7", "SLURM_JOBID=7", "SLURM_JOB_NODELIST=n[1-2]", "MUSTER_PROCESSORS=4",
                          "SLURMD_NODENAME=n2", "SLURM_CONF=/x", "SLURM_ARRAY_TASK_ID=4", "CUDA_VISIBLE_DEVICES=2,3",
                          "PATH=/copy:/bin"));
}

TEST(AgentEnvironmentTest, TasksFindTheAgentsOwnMuster) {
  EXPECT_THAT(TaskEnvironment({}, "/copy"), ElementsAre("PATH=/copy:/usr/local/bin:/usr/bin:/bin"));
}

TEST(AgentEnvironmentTest, TheHostIsWhereSshReachedIt) {
  EXPECT_EQ(ReachedAddress({"A=b", "SSH_CONNECTION=10.0.0.1 50000 10.0.0.2 22"}), "10.0.0.2");
  EXPECT_EQ(ReachedAddress({"SSH_CONNECTION=2001:db8::1 50000 2001:db8::2 22"}), "2001:db8::2");
  EXPECT_EQ(ReachedAddress({"A=b"}), "127.0.0.1");
  EXPECT_EQ(ReachedAddress({"SSH_CONNECTION=UNKNOWN"}), "127.0.0.1");
  EXPECT_EQ(ReachedAddress({"SSH_CONNECTION=a 1  22"}), "127.0.0.1");
}

}  // namespace
}  // namespace muster::agent_environment_test
