#include "muster/launch/engines/slurm/step_command.h"

#include <gmock/gmock.h>

namespace muster::step_command_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ElementsAre, ::testing::IsSupersetOf, ::testing::Not,
    ::testing::StartsWith;

const AgentProgram kProgram = {
    .muster = "/opt/muster", .job = "job-1", .rendezvous = "/shared/meet", .grace = absl::Seconds(45)};

TEST(StepCommandTest, OneSrunStartsAnAgentOnEachNode) {
  EXPECT_THAT(
      StepOnAllNodes(kProgram, 3),
      ElementsAre("srun", "--nodes=3", "--ntasks=3", "--ntasks-per-node=1", "--overlap", "--mem=0", "--cpu-bind=none",
                  "--mpi=none", "--kill-on-bad-exit=0", "--no-kill", "--wait=0", "--input=none", "--label",
                  "--export=ALL", "--chdir=/", "/opt/muster", "agent", "--serve", "job-1", "--rendezvous",
                  "/shared/meet", "--host_variable", "SLURMD_NODENAME", "--grace", "45"));
}

TEST(StepCommandTest, ANodeMayGetAStepOfItsOwn) {
  EXPECT_THAT(StepOnNodes(kProgram, {"n2"}, std::nullopt),
              AllOf(IsSupersetOf({"--nodes=1", "--ntasks=1", "--nodelist=n2", "--overlap"}),
                    Not(Contains(StartsWith("--cpus-per-task"))), Not(Contains(StartsWith("--gres")))));
}

TEST(StepCommandTest, GpusAreNamedWhereAStepWouldGetOtherOnes) {
  EXPECT_THAT(StepOnNodes(kProgram, {"n1", "n3"}, 2),
              IsSupersetOf({"--nodes=2", "--ntasks=2", "--nodelist=n1,n3", "--gres=gpu:2"}));
  EXPECT_THAT(StepOnNodes(kProgram, {"n2"}, 0), Contains("--gres=none"));
}

TEST(StepCommandTest, AgentsAreToldThatTheirSupervisorGetsTheJobsSignals) {
  AgentProgram program = kProgram;
  EXPECT_THAT(StepOnNodes(program, {"n2"}, std::nullopt), Not(Contains("--supervisor_in_job")));
  program.in_job = true;
  EXPECT_EQ(StepOnNodes(program, {"n2"}, std::nullopt).back(), "--supervisor_in_job");
}

TEST(StepCommandTest, SrunGetsNoOptionsFromAround) {
  EXPECT_THAT(
      StepEnvironment({"PATH=/bin",
                       "SLURM_JOB_ID=7",
                       "SLURM_JOBID=7",
                       "SLURM_CONF=/etc/slurm.conf",
                       "SLURM_CPUS_PER_TASK=2",
                       "SLURM_JOB_NAME=night",
                       "SLURM_SUBMIT_DIR=/x",
                       "SLURM_JOB_NUM_NODES=2",
                       "SLURM_NTASKS=8",
                       "SLURM_MEM_PER_NODE=100",
                       "SLURM_PROCID=0",
                       "SRUN_CPUS_PER_TASK=3",
                       "SRUN_DEBUG=3",
                       "SBATCH_PARTITION=x",
                       "SALLOC_QOS=y",
                       "MUSTER_JOB_TOKEN=secret",
                       "MUSTER_HOME=/kept",
                       "MUSTER_TRACE=/t",
                       "SLURMD_NODENAME=n1",
                       "HOME=/root"}),
      ElementsAre("PATH=/bin", "SLURM_JOB_ID=7", "SLURM_CONF=/etc/slurm.conf", "SLURM_JOB_NAME=night",
                  "SLURM_SUBMIT_DIR=/x", "MUSTER_HOME=/kept", "MUSTER_TRACE=/t", "SLURMD_NODENAME=n1", "HOME=/root"));
}

TEST(StepCommandTest, AJobGetsWhatTheUserSetsAndNothingOfTheJobAround) {
  EXPECT_THAT(
      SubmitEnvironment({"PATH=/bin", "SLURM_JOB_ID=7", "SLURM_CONF=/etc/slurm.conf", "SBATCH_PARTITION=x",
                         "SQUEUE_FORMAT=%i", "MUSTER_RUN_ID=4-1", "MUSTER_JOB_TOKEN=secret", "MUSTER_RESOLVE=none",
                         "MUSTER_OUTPUT_ROOT=/results", "MUSTER_STATUS_PORT=9100", "MUSTER_MKL_AMD=0"}),
      ElementsAre("PATH=/bin", "SLURM_CONF=/etc/slurm.conf", "SBATCH_PARTITION=x", "MUSTER_RESOLVE=none",
                  "MUSTER_OUTPUT_ROOT=/results", "MUSTER_MKL_AMD=0"));
}

}  // namespace
}  // namespace muster::step_command_test
