// With small scripts in the places of commands.
#include "muster/launch/engines/command/command_run.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/testing/hanging_script.h"
#include "muster/launch/testing/piped_program_text.h"

namespace muster::command_run_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::SizeIs;

class CommandRunTest : public ::testing::Test {
 protected:
  // Runs a script to its end.
  CommandOutput Run(const std::string& script, absl::Duration time_limit = absl::Hours(1)) {
    const CommandOrder order{
        .words = {"sh", "-c", script}, .environment = {kUsualPath}, .folder = folder_.path(), .time_limit = time_limit};
    const auto output = RunCommand(order, RealClock(), [this](std::string_view line) { errors_.emplace_back(line); });
    EXPECT_TRUE(output.ok()) << output.status();
    return output.value_or(CommandOutput());
  }

  const ScratchFolder folder_;
  std::vector<std::string> errors_;
};

TEST_F(CommandRunTest, CutsWhatItWritesIntoLines) {
  const CommandOutput output = Run("printf 'a\\n\\nb\\r\\nlast'; echo why >&2");
  EXPECT_THAT(output.lines, ElementsAre("a", "b", "last"));
  EXPECT_THAT(errors_, ElementsAre("why"));
  EXPECT_TRUE(output.end.status.ok());
}

TEST_F(CommandRunTest, RunsInItsFolderWithTheProgramThere) {
  folder_.Write("here", "#!/bin/sh\npwd\n");
  ASSERT_EQ(chmod((folder_ / "here").c_str(), 0700), 0);
  const CommandOrder order{
      .words = {"./here"}, .environment = {kUsualPath}, .folder = folder_.path(), .time_limit = absl::Hours(1)};
  const auto output = RunCommand(order, RealClock(), [](std::string_view) {});
  ASSERT_TRUE(output.ok()) << output.status();
  ASSERT_THAT(output->lines, SizeIs(1));
  EXPECT_THAT(output->lines.front(), HasSubstr("muster_test_"));
}

TEST_F(CommandRunTest, AFailureHasTheCommandItsExitAndItsLastLine) {
  EXPECT_EQ(Run("echo first >&2; echo 'no such queue' >&2; exit 3").end.text,
            "sh -c 'echo first >&2; echo '\\''no such queue'\\'' >&2; exit 3' exited with 3 (no such queue)");
}

// Its child ignores SIGTERM, and would keep a scheduler's door open for ever.
TEST_F(CommandRunTest, TheTimeLimitEndsAllThatItHasStarted) {
  const CommandOutput output = Run(
      "sh -c 'trap \"\" TERM; echo $$ >child; exec sleep 1000' & while ! [ -s child ]; do :; done; echo ready; wait",
      absl::Milliseconds(300));
  EXPECT_TRUE(output.end.time_over);
  EXPECT_THAT(output.end.text, HasSubstr("hasn't ended within 300ms"));
  // A test that hangs here has found a child that was left.
  while (IsAlive(folder_.Read("child"))) sched_yield();
}

TEST_F(CommandRunTest, ALineWithoutEndIsCut) {
  const CommandOutput output = Run("head -c 100000 /dev/zero | tr '\\0' x");
  ASSERT_THAT(output.lines, SizeIs(2));
  EXPECT_THAT(output.lines.front(), SizeIs(CommandRun::kLongestLine));
}

// A release may print without end, too.
TEST_F(CommandRunTest, TheLastLinesAreKept) {
  const CommandOutput output = Run("seq 250");
  EXPECT_THAT(output.lines, SizeIs(100));
  EXPECT_EQ(output.lines.back(), "250");
}

// Its time limit holds, and so does a kill: the loop has its turn although there is always more to read.
TEST_F(CommandRunTest, OneThatWritesWithoutEndKeepsNobodyBusy) {
  const CommandOrder order{.words = {"sh", "-c", "yes | head -c 40000 >&2; echo >full; read line <gate"},
                           .environment = {kUsualPath},
                           .folder = folder_.path(),
                           .time_limit = absl::Hours(1)};
  ASSERT_EQ(mkfifo((folder_ / "gate").c_str(), 0600), 0);
  FdLoop loop(RealClock());
  size_t lines = 0;
  const auto run = CommandRun::Start(order, loop, RealClock(),
                                     {.out = [](std::string_view) {},
                                      .err = [&lines](std::string_view) { ++lines; },
                                      .ended = [](const CommandEnd&) {}});
  ASSERT_TRUE(run.ok()) << run.status();
  while (access((folder_ / "full").c_str(), F_OK) != 0) sched_yield();
  loop.RunOnce((*run)->deadline());
  EXPECT_GT(lines, 0U);
  EXPECT_LT(lines, 10000U) << "of 20000 that are there";
}

TEST_F(CommandRunTest, AProgramThatThereIsntIsNamed) {
  const CommandOrder order{
      .words = {"./none", "7"}, .environment = {kUsualPath}, .folder = folder_.path(), .time_limit = absl::Hours(1)};
  const absl::Status status = RunCommand(order, RealClock(), [](std::string_view) {}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("./none 7: "));
}

}  // namespace
}  // namespace muster::command_run_test
