#include "muster/base/os/processors.h"

#include <gmock/gmock.h>
#include <sched.h>

#include "muster/base/testing/scratch_folder.h"

namespace muster::processors_test {
namespace {

using ::testing::HasSubstr;

class ProcessorsTest : public ::testing::Test {
 protected:
  ProcessorsTest() {
    CPU_ZERO(&before_);
    EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
  }
  ~ProcessorsTest() override { EXPECT_EQ(sched_setaffinity(0, sizeof before_, &before_), 0); }

  Processors Usable(std::optional<int> job_limit = std::nullopt) const {
    return UsableProcessors(job_limit, {.proc = root_ / "proc", .cgroups = root_ / "cgroup"});
  }

  const ScratchFolder root_;
  cpu_set_t before_;
};

TEST_F(ProcessorsTest, WithoutLimitsTheyAreThoseThatTheProcessMayRunOn) {
  EXPECT_EQ(Usable().count, CPU_COUNT(&before_));
  EXPECT_EQ(Usable(1 << 20).count, CPU_COUNT(&before_)) << "a limit never adds any";
}

TEST_F(ProcessorsTest, AnAffinityMaskLimitsThem) {
  if (CPU_COUNT(&before_) < 2) GTEST_SKIP() << "there is only one processor";
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; CPU_COUNT(&one) == 0; ++i)
    if (CPU_ISSET(i, &before_)) CPU_SET(i, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(Usable().count, 1);
}

TEST_F(ProcessorsTest, TheLowestQuotaOfAllGroupsLimitsThem) {
  root_.Write("proc/self/cgroup", "0::/outer/inner\n");
  root_.Write("cgroup/outer/cpu.max", "50000 100000\n");
  root_.Write("cgroup/outer/inner/cpu.max", "max 100000\n");
  const Processors usable = Usable();
  EXPECT_EQ(usable.count, 1) << "half a processor is one thread";
  if (CPU_COUNT(&before_) > 1) {
    EXPECT_THAT(usable.why, HasSubstr("quota of 0.5"));
  }
}

TEST_F(ProcessorsTest, InAContainerTheRootIsItsOwnGroup) {
  root_.Write("proc/self/cgroup", "0::/\n");
  root_.Write("cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(Usable().count, 1);
}

TEST_F(ProcessorsTest, QuotasOfVersionOneLimitThem) {
  root_.Write("proc/self/cgroup", "12:memory:/a\n4:cpu,cpuacct:/a/b\n0::/\n");
  root_.Write("cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "90000\n");
  root_.Write("cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  root_.Write("cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
  root_.Write("cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Usable().count, 1);
}

TEST_F(ProcessorsTest, NoQuotaAndNonsenseAreNoLimit) {
  root_.Write("proc/self/cgroup", "nonsense\n4:cpu:/\n0::/\n");
  root_.Write("cgroup/cpu.max", "max 100000\n");
  root_.Write("cgroup/cpu/cpu.cfs_quota_us", "many\n");
  EXPECT_EQ(Usable().count, CPU_COUNT(&before_));
}

TEST_F(ProcessorsTest, TheJobsOwnLimitLimitsThem) {
  EXPECT_EQ(Usable(1).count, 1);
  EXPECT_EQ(Usable(0).count, 1) << "there is always one";
  if (CPU_COUNT(&before_) > 1) {
    EXPECT_EQ(Usable(1).why, "by MUSTER_PROCESSORS");
  }
}

}  // namespace
}  // namespace muster::processors_test
