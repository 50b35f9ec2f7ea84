// `muster run --layout node` as a user runs it, with shell scripts as the tasks' program and as TensorBoard.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "muster/base/net/free_ports.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/task/node_layout.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/process.h"

namespace muster::node_layout_command_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;

constexpr char kWhoAmI[] =
    "type=${TF_CONFIG##*\\\"type\\\":\\\"}; type=${type%%\\\"*}; "
    "index=${TF_CONFIG##*\\\"index\\\":}; task=$type:${index%%[,\\}]*}; ";

std::vector<std::string> Words(const std::vector<std::string>& flags, const std::string& script) {
  return Joined(Joined({BinFolder() + "/muster", "run", "--layout", "node"}, flags),
                {"--", "sh", "-c", kWhoAmI + script});
}

// Puts a folder with a `tensorboard` that runs `script` first in PATH.
ProcessOptions WithTensorBoard(const ScratchFolder& folder, const std::string& script) {
  const std::string file = folder / "tensorboard";
  std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
  chmod(file.c_str(), 0755);
  return {.environment = {{"PATH", folder.path() + ":" + std::getenv("PATH")}}};
}

TEST(NodeLayoutCommand, StartsAMasterAPsAndTwoWorkersWithADeviceEach) {
  if (CountGpus() > 0 && CountGpus() < 4) GTEST_SKIP() << "this machine has " << CountGpus() << " GPUs, not 4 or none";
  Process run(Words({"--no-tensorboard", "--devices", "4"}, "echo $task ${CUDA_VISIBLE_DEVICES}"),
              {.environment = {{"CUDA_VISIBLE_DEVICES", "7,5,3,1"}}});
  EXPECT_EQ(run.Wait(), 0) << run.err;
  EXPECT_THAT(After(run.out, "[master:0] "), ElementsAre("master:0 7"));
  EXPECT_THAT(After(run.out, "[worker:0] "), ElementsAre("worker:0 5"));
  EXPECT_THAT(After(run.out, "[worker:1] "), ElementsAre("worker:1 3"));
  EXPECT_THAT(After(run.out, "[ps:0] "), ElementsAre("ps:0 1"));
  EXPECT_THAT(run.err, HasSubstr("master:0 (the chief) is process "));
}

TEST(NodeLayoutCommand, TheMastersEndDecides) {
  Process run(Words({"--no-tensorboard", "--devices", "1"}, "[ $task = master:0 ] && exit 6; exit 0"));
  EXPECT_EQ(run.Wait(), 6) << run.err;
}

TEST(NodeLayoutCommand, TheRootIsToldToAll) {
  const ScratchFolder root;
  Process run(
      Words({"--no-tensorboard", "--devices", "1", "--output_root", root.path()}, "echo root $MUSTER_OUTPUT_ROOT"));
  EXPECT_EQ(run.Wait(), 0) << run.err;
  EXPECT_THAT(After(run.out, "[ps:0] "), ElementsAre("root " + root.path()));
}

TEST(NodeLayoutCommand, ThePlanOfSeveralNodesIsShown) {
  Process run(Words({"--nodes", "h1,h2", "--devices", "2", "--dry-run"}, "true"));
  EXPECT_EQ(run.Wait(), 0) << run.err;
  EXPECT_THAT(After(run.out, "# "),
              ElementsAre("--- first, on h1: makes the job's token and copies it to the others",
                          "--- on h1, in the program's folder", "ps:0", "master:0 (the chief)", "worker:0", "worker:1",
                          "--- on h2, in the program's folder", "ps:1", "worker:2", "worker:3"));
  EXPECT_THAT(run.out, HasSubstr(R"("ps":["h1:2222","h2:2222"])"));
  EXPECT_THAT(run.out, HasSubstr(R"("worker":["h1:2224","h1:2225","h2:2223","h2:2224"])"));
}

// Takes ports that are free now; the tasks of the test bind them a moment later.
uint16_t FirstOfFreePorts(uint16_t count) {
  for (uint16_t first = 21000; first < 30000; first += count)
    if (FreePorts::Take({first, count}).ok()) return first;
  return 0;
}

TEST(NodeLayoutCommand, TheLinesOfTheNodesTrainWhenTheyArePasted) {
  // Two addresses of this machine are the nodes; each node's lines run in a shell of their own.
  const ScratchFolder scratch;
  std::ofstream(scratch / "scp") << "#!/bin/sh\necho copied $*\n";
  chmod((scratch / "scp").c_str(), 0755);
  const ProcessOptions options = {
      .environment = {{"HOME", scratch.path()}, {"PATH", scratch.path() + ":" + std::getenv("PATH")}}};
  Process plan({BinFolder() + "/muster", "run", "--layout", "node", "--nodes", "127.0.0.1,127.0.0.2", "--devices", "1",
                "--first_port", std::to_string(FirstOfFreePorts(4)), "--dry-run", "--", BinFolder() + "/toy_worker",
                "--steps=50"},
               options);
  ASSERT_EQ(plan.Wait(), 0) << plan.err;
  const std::vector<std::string> blocks = absl::StrSplit(plan.out, "\n# --- ");
  ASSERT_EQ(blocks.size(), 3) << plan.out;
  Process token({"/bin/sh", "-c", blocks[0]}, options);
  EXPECT_EQ(token.Wait(), 0) << token.err;
  EXPECT_THAT(token.out, testing::MatchesRegex("copied -p .*/\\.muster-token-[0-9a-f]+ 127\\.0\\.0\\.2:\n"));
  Process first({"/bin/sh", "-c", "# " + blocks[1]}, options);
  Process second({"/bin/sh", "-c", "# " + blocks[2]}, options);
  EXPECT_EQ(first.Wait(), 0);
  EXPECT_EQ(second.Wait(), 0);
  EXPECT_THAT(first.err, AllOf(HasSubstr("master:0"), HasSubstr("Loss for final step")));
  EXPECT_THAT(second.err, HasSubstr("worker:2"));
  EXPECT_THAT(EntriesOf(scratch.path()), ElementsAre("scp")) << "the token's file is gone";
}

TEST(NodeLayoutCommand, ThePastedLinesEndWithTheCodeOfATaskThatFailed) {
  Process plan(Words({"--devices", "1", "--dry-run"}, "[ $task = master:0 ] && exit 6; exit 0"));
  ASSERT_EQ(plan.Wait(), 0) << plan.err;
  Process pasted({"/bin/sh", "-c", plan.out});
  EXPECT_EQ(pasted.Wait(), 6) << plan.out;
}

TEST(NodeLayoutCommand, TensorBoardRunsOnTheRootUntilTheTasksHaveEnded) {
  const ScratchFolder root, tools;
  // It waits without a child: one that a shell has just forked has the shell's trap until its exec, and loses a signal.
  const ProcessOptions options = WithTensorBoard(
      tools,
      "trap 'echo bye; exit 0' TERM; mkfifo $0.wait; exec 3<>$0.wait; echo with $*; while :; do read line <&3; done");
  // The master ends when the test tells it that the page is there.
  Process run(Words({"--devices", "1", "--output_root", root.path()},
                    "[ $task = master:0 ] || exit 0; trap 'kill $!; exit 0' USR1; echo pid $$; while :; do sleep 1000 "
                    "& wait; done"),
              options);
  run.WaitForErr("TensorBoard on " + root.path() + ": http://127.0.0.1:");
  run.WaitForOut("[tensorboard:0] with --logdir " + root.path() + " --host 127.0.0.1 --port ");
  run.WaitForOut("[master:0] pid ");
  run.WaitForOut("\n");
  const std::vector<std::string> master = After(run.out, "[master:0] pid ");
  ASSERT_FALSE(master.empty());
  ASSERT_EQ(kill(std::stoi(master.front()), SIGUSR1), 0);
  EXPECT_EQ(run.Wait(), 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("[tensorboard:0] bye\n"));
  EXPECT_THAT(run.err, Not(HasSubstr("left behind")));
  EXPECT_THAT(run.err, Not(HasSubstr("without it")));
}

TEST(NodeLayoutCommand, ATensorBoardThatFailsIsSaidAndTheRunGoesOn) {
  const ScratchFolder root, tools;
  const ProcessOptions options = WithTensorBoard(tools, "exit 4");
  Process run(
      Words({"--devices", "1", "--output_root", root.path()},
            "[ $task = master:0 ] || exit 0; trap 'exit 3' USR1; echo pid $$; while :; do sleep 1000 & wait; done"),
      options);
  run.WaitForErr("tensorboard:0 exited with 4; the run goes on without it");
  run.WaitForOut("[master:0] pid ");
  run.WaitForOut("\n");
  ASSERT_EQ(kill(std::stoi(After(run.out, "[master:0] pid ").at(0)), SIGUSR1), 0);
  EXPECT_EQ(run.Wait(), 3);
}

TEST(NodeLayoutCommand, WithoutTensorBoardTheRunSaysSo) {
  const ScratchFolder root, tools;  // a PATH without TensorBoard, even if this machine has it
  ASSERT_EQ(symlink("/bin/sh", (tools / "sh").c_str()), 0);
  Process run(Words({"--devices", "1", "--output_root", root.path()}, "exit 0"),
              {.environment = {{"PATH", tools.path()}}});
  EXPECT_EQ(run.Wait(), 0) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr("TensorBoard isn't installed (pip install tensorboard, or ./dev setup in a checkout of "
                        "muster): the run goes on without it"));
}

TEST(NodeLayoutCommand, RefusesWhatDoesNotGoTogether) {
  const auto refusal = [](const std::vector<std::string>& flags) {
    Process run(Joined(Joined({BinFolder() + "/muster", "run"}, flags), {"--", "true"}));
    EXPECT_EQ(run.Wait(), 2) << run.err;
    return run.err;
  };
  EXPECT_THAT(refusal({"--layout", "node", "--workers", "3"}), HasSubstr("accepted without --ps, --workers"));
  EXPECT_THAT(refusal({"--layout", "host"}), HasSubstr("--layout 'host': accepted is node"));
  EXPECT_THAT(refusal({"--layout", "node", "--devices", "0"}), HasSubstr("--devices 0: accepted are 1 to 64"));
  EXPECT_THAT(refusal({"--layout", "node", "--nodes", "h1,h1", "--dry-run"}), HasSubstr("'h1' is there twice"));
  EXPECT_THAT(refusal({"--layout", "node", "--nodes", "h1,h2"}), HasSubstr("--dry-run shows the plan"));
  EXPECT_THAT(refusal({"--first_port", "3000"}), HasSubstr("--first_port: accepted with several --nodes only"));
  EXPECT_THAT(refusal({"--layout", "node", "--nodes", "h1,h2", "--dry-run", "--first_port", "65534"}),
              HasSubstr("--first_port '65534': accepted is 1 to 65527"));
  EXPECT_THAT(refusal({"--nodes", "h1"}), HasSubstr("with --layout node only"));
  EXPECT_THAT(refusal({"--tensorboard"}), HasSubstr("--output_root or --model_dir"));
}

}  // namespace
}  // namespace muster::node_layout_command_test
