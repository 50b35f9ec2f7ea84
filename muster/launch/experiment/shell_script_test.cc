// Tests with the real /bin/sh what ShellScript's script does.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/task/exit_status.h"

namespace muster::shell_script_test {
namespace {

using ::testing::HasSubstr;

// A shell in a process group of its own, as a task has.
class Shell {
 public:
  explicit Shell(const std::vector<std::string>& commands, FailedCommand failed = FailedCommand::kNamed) {
    const std::string script = ShellScript(commands, failed);
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      close(ends[0]);
      close(ends[1]);
      execl("/bin/sh", "/bin/sh", "-c", script.c_str(), nullptr);
      _exit(127);
    }
    setpgid(pid_, pid_);
    close(ends[1]);
    out_fd_ = ends[0];
  }
  ~Shell() {
    kill(-pid_, SIGKILL);
    if (!waited_) waitpid(pid_, nullptr, 0);
    close(out_fd_);
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  // Reads until `text` has arrived, or to the end.
  void ReadUntil(const std::string& text) {
    while (text.empty() || out.find(text) == std::string::npos) {
      char buffer[4096];
      const ssize_t got = read(out_fd_, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      out.append(buffer, got);
    }
    EXPECT_THAT(out, HasSubstr(text));
  }
  void EndGroup() const { kill(-pid_, SIGTERM); }
  ExitStatus Wait() {
    ReadUntil("");
    int status = 0;
    waitpid(pid_, &status, 0);
    waited_ = true;
    if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
    return {.code = WEXITSTATUS(status)};
  }

  std::string out;

 private:
  pid_t pid_ = 0;
  int out_fd_ = -1;
  bool waited_ = false;
};

TEST(ShellScript, RunsCommandsInOrder) {
  Shell shell({"echo one; cd /", "pwd", "echo \"it's\" three"});
  EXPECT_EQ(shell.Wait(), (ExitStatus{.code = 0}));
  EXPECT_EQ(shell.out, "one\n/\nit's three\n");
}

TEST(ShellScript, StopsAtTheFirstFailureWithItsCode) {
  Shell shell({"echo one", "exit 3", "echo never"});
  EXPECT_EQ(shell.Wait(), (ExitStatus{.code = 3}));
  Shell other({"sh -c 'exit 7'", "echo never"});
  EXPECT_EQ(other.Wait(), (ExitStatus{.code = 7}));
  EXPECT_EQ(shell.out, "one\n");
  EXPECT_EQ(other.out, "muster: command 1 of 2, `sh -c 'exit 7'`, exited with 7\n");
}

TEST(ShellScript, SaysWhichOfSeveralCommandsHasFailed) {
  Shell shell({"echo first", "false", "echo never"});
  EXPECT_EQ(shell.Wait(), (ExitStatus{.code = 1}));
  EXPECT_EQ(shell.out, "first\nmuster: command 2 of 3, `false`, exited with 1\n");
  Shell lines({"true", ": '\\n%s' &&\nfalse"});
  lines.Wait();
  EXPECT_EQ(lines.out, "muster: command 2 of 2, `: '\\n%s' &&\\x0afalse`, exited with 1\n");
  Shell silent({"true", "false"}, FailedCommand::kNotNamed);
  EXPECT_EQ(silent.Wait(), (ExitStatus{.code = 1}));
  EXPECT_EQ(silent.out, "");
  Shell alone({"(exit 2)"});
  alone.Wait();
  EXPECT_EQ(alone.out, "");
}

TEST(ShellScript, ABrokenCommandEndsItBeforeTheNext) {
  Shell shell({"echo 'unfinished", "echo never'"});
  EXPECT_FALSE(shell.Wait().ok());
  EXPECT_THAT(shell.out, testing::Not(HasSubstr("\nnever")));
}

TEST(ShellScript, AProgramThatIsNotThereIs127) {
  Shell shell({"no-such-program-of-muster"});
  EXPECT_EQ(shell.Wait(), (ExitStatus{.code = 127}));
}

// The command takes time to end after SIGTERM. The shell waits for it and exits with its code.
TEST(ShellScript, WaitsForACommandThatEndsInItsOwnWay) {
  Shell shell({"sh -c 'trap \"echo saved; exit 5\" TERM; echo up; while :; do sleep 0.01; done'", "echo never"});
  shell.ReadUntil("up");
  shell.EndGroup();
  EXPECT_EQ(shell.Wait(), (ExitStatus{.code = 5}));
  EXPECT_THAT(shell.out, HasSubstr("saved"));
  EXPECT_THAT(shell.out, testing::Not(HasSubstr("never")));
}

TEST(ShellScript, RunsNothingMoreOnceAskedToEnd) {
  Shell shell({"sh -c 'trap \"exit 0\" TERM; echo up; while :; do sleep 0.01; done'; echo never", "echo never"});
  shell.ReadUntil("up");
  shell.EndGroup();
  EXPECT_EQ(shell.Wait(), (ExitStatus{.code = 128 + SIGTERM}));
  EXPECT_THAT(shell.out, testing::Not(HasSubstr("never")));
}

TEST(ShellScript, ALoopThatIsCutShortHasNotEndedWell) {
  Shell shell({"echo up; while :; do :; done"});
  shell.ReadUntil("up");
  shell.EndGroup();
  EXPECT_EQ(shell.Wait(), (ExitStatus{.code = 128 + SIGTERM}));
}

TEST(ShellScript, WaitsForWhatRunsInTheBackground) {
  Shell shell({"sh -c 'trap \"sleep 0.1; echo saved; exit 0\" TERM; echo up; while :; do sleep 0.01; done' & wait"});
  shell.ReadUntil("up");
  shell.EndGroup();
  shell.Wait();  // 143 if the signal came while it waited, otherwise the command's own code
  EXPECT_THAT(shell.out, HasSubstr("saved"));
}

// Its commands react to SIGTERM as if there were no shell.
TEST(ShellScript, ACommandThatDoesNothingAboutSigtermDiesOfIt) {
  Shell shell({"sh -c 'echo up; exec sleep 100'"});
  shell.ReadUntil("up");
  shell.EndGroup();
  EXPECT_EQ(shell.Wait(), (ExitStatus{.signal = SIGTERM}));
}

// The task's process is the program itself, so the signal that ends it is seen.
TEST(ShellScript, BecomesAProgramThatStandsAlone) {
  Shell shell({"sh -c 'echo up; kill -SEGV $$'"});
  EXPECT_EQ(shell.Wait(), (ExitStatus{.signal = SIGSEGV}));
  EXPECT_EQ(shell.out, "up\n");
}

TEST(ShellScript, ALaterCommandFindsTheFunctionsAndTrapsOfEarlierOnes) {
  Shell shell({"greet() { echo hello; }", "trap 'echo bye' EXIT", "greet"});
  EXPECT_EQ(shell.Wait(), (ExitStatus{.code = 0}));
  EXPECT_EQ(shell.out, "hello\nbye\n");
}

// Others are run by a shell, which has only the code.
TEST(ShellScript, OfAProgramBelowItHasTheCode) {
  Shell shell({"sh -c 'kill -SEGV $$'; exit $?"});
  EXPECT_EQ(shell.Wait(), (ExitStatus{.code = 128 + SIGSEGV}));
}

}  // namespace
}  // namespace muster::shell_script_test
