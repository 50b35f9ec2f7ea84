// Where Slurm binds each step to its cores and gives it memory of its own, tasks nevertheless have all that the job has
// on their node, also when `muster run` itself is in a step of one core or another step holds the memory.
#include <gmock/gmock.h>
#include <sched.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/slurm_cluster.h"

namespace muster::slurm_binding_test {
namespace {

using ::testing::ElementsAre;

class SlurmBinding : public ::testing::Test {
 protected:
  static std::string WhyNot() {
    if (const std::string why = SlurmCluster::WhyNot(); !why.empty()) return why;
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own) != 0) return NoTestBecause("the CPUs of this process aren't known");
    if (CPU_COUNT(&own) < 2 || CPU_COUNT(&own) != sysconf(_SC_NPROCESSORS_ONLN))
      return NoTestBecause("nothing can be bound without two CPUs, all of this machine");
    return "";
  }
  void SetUp() override {
    if (const std::string why = WhyNot(); !why.empty()) GTEST_SKIP() << why;
    hosts_ = std::make_unique<SimulatedHosts>(1);
    slurm_ = std::make_unique<SlurmCluster>(*hosts_, std::vector<int>{cpus_},
                                            SlurmFeatures{.counts_memory = true, .binds_cores = true});
  }
  void TearDown() override {
    if (slurm_ != nullptr) slurm_->AwaitNothingElseOn("h1");
  }

  // Runs it in an allocation of the whole node, and returns its stdout.
  std::string InAllocation(const std::vector<std::string>& words) const {
    Process process(slurm_->On("h0", Joined({"salloc", "--exclusive"}, words)), {.directory = hosts_->shared()});
    EXPECT_EQ(process.Wait(), 0) << process.err;
    return process.out;
  }

  const int cpus_ = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const std::vector<std::string> counts_ = {
      BinFolder() + "/muster", "run", "--on", "slurm", "--ps", "0", "--workers", "1", "--", "nproc"};
  const std::vector<std::string> step_of_one_core_ = {"srun", "--ntasks=1", "--cpus-per-task=1", "--cpu-bind=cores"};
  std::unique_ptr<SimulatedHosts> hosts_;
  std::unique_ptr<SlurmCluster> slurm_;
};

TEST_F(SlurmBinding, TasksHaveAllCpusOfTheJobOnTheirNode) {
  int of_step = 0;
  ASSERT_TRUE(absl::SimpleAtoi(InAllocation(Joined(step_of_one_core_, {"nproc"})), &of_step));
  EXPECT_LT(of_step, cpus_) << "Slurm binds nothing here";
  EXPECT_THAT(After(InAllocation(counts_), "[worker:0] "), ElementsAre(absl::StrCat(cpus_)));
  EXPECT_THAT(After(InAllocation(Joined(step_of_one_core_, counts_)), "[worker:0] "), ElementsAre(absl::StrCat(cpus_)))
      << "from within a step";
}

TEST_F(SlurmBinding, TasksStartBesideAStepThatHoldsAllMemory) {
  const std::string held = hosts_->shared() + "/held";
  const std::string script =
      "mkfifo go && { srun --exact --ntasks=1 --cpus-per-task=1 --mem=1000 sh -c 'echo holds it; read -r line <go' "
      ">" +
      held + " & } && until grep -q holds " + held +
      "; do sleep 0.1; done && \"$@\"; code=$?; echo >go; wait; exit $code";
  EXPECT_THAT(After(InAllocation(Joined({"bash", "-c", script, "bash"}, counts_)), "[worker:0] "),
              ElementsAre(absl::StrCat(cpus_)));
}

}  // namespace
}  // namespace muster::slurm_binding_test
