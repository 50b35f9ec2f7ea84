#include "muster/launch/system/piped_program.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "muster/launch/testing/piped_program_text.h"

namespace muster::piped_program_test {
namespace {

using ::testing::HasSubstr;

TEST(PipedProgramTest, ItsStreamsArePipes) {
  const ProgramText text = TextOf({"sh", "-c", "cat; echo bad >&2; exit 3"}, "words");
  EXPECT_EQ(text.output, "words");
  EXPECT_EQ(text.errors, "bad\n");
  EXPECT_EQ(text.status.code, 3);
}

TEST(PipedProgramTest, ThatIsMissingIsNamed) {
  const auto program = PipedProgram::Start({"muster-no-such-program"}, {kUsualPath});
  EXPECT_TRUE(absl::IsNotFound(program.status()));
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("muster-no-such-program"));
}

TEST(PipedProgramTest, HasASessionOfItsOwnAndNoBlockedSignals) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  const ProgramText text =
      TextOf({"sh", "-c", "read -r _ _ _ _ _ session _ </proc/self/stat; [ $session = $$ ] && kill -TERM $$"}, "");
  sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(text.status.signal, SIGTERM) << text.errors;
}

TEST(PipedProgramTest, EndsWithItsOwner) {
  std::string output;
  int stdout_copy = -1;
  {
    auto program = PipedProgram::Start({"sh", "-c", "echo up; sleep 1000 & wait"}, {kUsualPath});
    ASSERT_TRUE(program.ok());
    pollfd up = {program->stdout_fd(), POLLIN, 0};
    poll(&up, 1, -1);
    stdout_copy = dup(program->stdout_fd());
  }
  // The pipe's end comes once no process of it has the other end, the one in the background included.
  pollfd end = {stdout_copy, POLLIN, 0};
  while (poll(&end, 1, -1) == 1 && ReadSome(stdout_copy, output)) {
  }
  close(stdout_copy);
  EXPECT_EQ(output, "up\n");
}

TEST(PipedProgramTest, EndFdTellsOfTheEnd) {
  auto program = PipedProgram::Start({"sh", "-c", "kill -KILL $$"}, {kUsualPath});
  ASSERT_TRUE(program.ok());
  pollfd end = {program->end_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, -1), 1);
  EXPECT_EQ(program->Wait().signal, SIGKILL);
  EXPECT_EQ(program->Wait().signal, SIGKILL) << "once more";
}

}  // namespace
}  // namespace muster::piped_program_test
