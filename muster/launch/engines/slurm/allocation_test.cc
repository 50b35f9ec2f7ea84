#include "muster/launch/engines/slurm/allocation.h"

#include <gmock/gmock.h>

namespace muster::allocation_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr;

TEST(AllocationTest, TheJobsNodesAndCpusCount) {
  const auto allocation = AllocationIn({"SLURM_NODELIST=n9", "SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-3]",
                                        "SLURM_JOB_CPUS_PER_NODE=4(x2),2", "SLURM_CPUS_ON_NODE=1"});
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_EQ(allocation->job, "17");
  EXPECT_THAT(allocation->nodes, ElementsAre(AllocatedNode{"n1", 4}, AllocatedNode{"n2", 4}, AllocatedNode{"n3", 2}));
  EXPECT_EQ(allocation->ends_at, std::nullopt);
  EXPECT_EQ(DescribeAllocation(*allocation, absl::UTCTimeZone()), "job 17 of Slurm: 3 nodes with 4, 4, 2 CPUs");
}

TEST(AllocationTest, WhatOnlySomeVersionsSayIsOptional) {
  const auto allocation = AllocationIn(
      {"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n1", "SLURM_GPUS_PER_NODE=a100:2", "SLURM_JOB_END_TIME=1700000000"});
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_EQ(allocation->nodes.front().cpus, 0);
  EXPECT_EQ(DescribeAllocation(*allocation, absl::UTCTimeZone()), "job 17 of Slurm: 1 node, until 2023-11-14 22:13");
  const auto mixed = AllocationIn({"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_CPUS_PER_NODE=8(x2)",
                                   "SLURM_GPUS_PER_NODE=a100:2,v100:1", "SLURM_JOB_END_TIME=soon"});
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ(DescribeAllocation(*mixed, absl::UTCTimeZone()), "job 17 of Slurm: 2 nodes with each 8 CPUs");
}

TEST(AllocationTest, AJobOfSeveralPartsIsRefused) {
  const std::vector<std::string> job = {"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n1"};
  const auto with = [&job](const std::string& size) {
    std::vector<std::string> environment = job;
    environment.push_back("SLURM_HET_SIZE=" + size);
    return AllocationIn(environment).status();
  };
  EXPECT_TRUE(with("1").ok());
  EXPECT_THAT(std::string(with("2").message()), HasSubstr("2 parts"));
}

TEST(AllocationTest, OutsideItSaysHowToGetOne) {
  for (const std::vector<std::string>& environment :
       {std::vector<std::string>{}, {"SLURM_JOB_ID="}, {"SLURM_CONF=/x", "SLURM_JOB_IDS=1"}}) {
    const absl::Status status = AllocationIn(environment).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("salloc -N 2"), HasSubstr("sbatch")));
  }
}

TEST(AllocationTest, VariablesThatSlurmDidNotSetAreNamed) {
  const auto message = [](const std::vector<std::string>& environment) {
    const absl::Status status = AllocationIn(environment).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message({"SLURM_JOB_ID=1; rm"}), HasSubstr("SLURM_JOB_ID: "));
  EXPECT_THAT(message({"SLURM_JOB_ID=1"}), HasSubstr("SLURM_JOB_NODELIST: isn't set"));
  EXPECT_THAT(message({"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1"}),
              AllOf(HasSubstr("SLURM_JOB_NODELIST: "), HasSubstr("n[1")));
  EXPECT_THAT(message({"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_CPUS_PER_NODE=4"}),
              HasSubstr("tells of 1 nodes, and SLURM_JOB_NODELIST of 2"));
  EXPECT_THAT(message({"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_CPUS_PER_NODE=x"}),
              HasSubstr("SLURM_JOB_CPUS_PER_NODE: "));
}

}  // namespace
}  // namespace muster::allocation_test
