// A program that srun starts without any launcher, as far as its processes can tell: several copies of it with the
// variables of Slurm's tasks find each other and train together.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/net/free_ports.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/process.h"

namespace muster::srun_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

using Variables = std::vector<std::pair<std::string, std::string>>;

constexpr int kTasks = 4;

// Four tasks of a step on one node, whose last one is a ps at a port that is free.
class Srun : public testing::Test {
 protected:
  Variables Task(int proc) const {
    return {{"SLURM_JOB_ID", "17"},
            {"SLURM_STEP_ID", "0"},
            {"SLURM_STEP_NUM_TASKS", absl::StrCat(kTasks)},
            {"SLURM_STEP_NODELIST", "localhost"},
            {"SLURM_STEP_TASKS_PER_NODE", absl::StrCat(kTasks)},
            {"SLURM_NTASKS", absl::StrCat(kTasks)},
            {"SLURM_PROCID", absl::StrCat(proc)},
            {"SLURM_LOCALID", absl::StrCat(proc)},
            {"SLURM_NODEID", "0"},
            {"MUSTER_FIRST_PORT", absl::StrCat(port_ - (kTasks - 1))}};
  }
  static std::vector<std::string> Program(const std::vector<std::string>& flags) {
    return Joined({BinFolder() + "/toy_worker", "--width=10", "--steps=60"}, flags);
  }
  void ReleasePort() { ports_.Release(0); }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  ScratchFolder scratch_;

 private:
  FreePorts ports_ = *FreePorts::Reserve(1);
  const uint16_t port_ = ports_.port(0);
};

TEST_F(Srun, FourTasksTrainTogether) {
  ReleasePort();
  std::vector<std::unique_ptr<Process>> tasks;
  for (int proc = 0; proc < kTasks; ++proc)
    tasks.push_back(std::make_unique<Process>(Program({"--ps=1", "--aggregate=3", "--model_dir=" + scratch_ / "model"}),
                                              ProcessOptions{.environment = Task(proc)}));
  const std::vector<std::string> names = {"chief:0", "worker:0", "worker:1", "ps:0"};
  for (size_t proc = 0; proc < kTasks; ++proc) {
    EXPECT_EQ(tasks[proc]->Wait(), 0) << tasks[proc]->err;
    EXPECT_THAT(tasks[proc]->err, HasSubstr(absl::StrCat("toy_worker: role from Slurm: task ", proc,
                                                         " of 4 of step 17.0 is ", names[proc], " at 127.0.0.1:")));
    EXPECT_THAT(tasks[proc]->err, HasSubstr("(chief:0, ps:0, worker:0-1)"));
  }
  // An update is the mean of three gradients, so none of the workers has trained alone.
  EXPECT_THAT(EntriesOf(scratch_ / "model"), testing::Contains(HasSubstr("model.ckpt-60")));
}

TEST_F(Srun, ABusyPortIsNamedWithTheWayOut) {
  ReleasePort();
  Process first(Program({"--ps=1"}), {.environment = Task(kTasks - 1)});
  first.WaitForErr("serves at");
  Process second(Program({"--ps=1"}), {.environment = Task(kTasks - 1)});
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.err, AllOf(HasSubstr(address()), HasSubstr("is in use"), HasSubstr("--first_port=PORT")));
}

TEST_F(Srun, AShellInAnAllocationTrainsAloneAndSaysWhy) {
  const Variables allocation = {{"SLURM_JOB_ID", "17"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}};
  Process shell(Program({"--ps=1"}), {.environment = allocation});
  EXPECT_EQ(shell.Wait(), 0) << shell.err;
  EXPECT_THAT(shell.err, HasSubstr("toy_worker: alone: srun didn't start this process in Slurm's job 17; "
                                   "not used: --ps 1\n"));
  Variables terminal = Task(0);
  terminal.emplace_back("SLURM_PTY_PORT", "36043");
  Process pty(Program({}), {.environment = terminal});
  EXPECT_EQ(pty.Wait(), 0) << pty.err;
  EXPECT_THAT(pty.err, HasSubstr("alone: Slurm's step 17.0 has a terminal (srun --pty)\n"));
}

TEST_F(Srun, MusterResolveChooses) {
  Variables none = Task(1);
  none.emplace_back("MUSTER_RESOLVE", "none");
  Process alone(Program({}), {.environment = none});
  EXPECT_EQ(alone.Wait(), 0) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("alone: MUSTER_RESOLVE=none; not used: Slurm's step"));
  none.back().second = "srun";
  Process unknown(Program({}), {.environment = none});
  EXPECT_EQ(unknown.Wait(), 2);
  EXPECT_EQ(unknown.err,
            "toy_worker: MUSTER_RESOLVE: \"srun\" is no source of roles; accepted: none, tf_config, torchrun, slurm\n");
}

}  // namespace
}  // namespace muster::srun_test
