#include "muster/launch/backends/local/guard.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "muster/launch/backends/local/kernel_file.h"
#include "muster/launch/system/pid_fd.h"
#include "muster/launch/system/random_hex.h"

namespace muster::guard_test {
namespace {

// Turns a hang into a failed test.
constexpr int kHangMs = 60000;

// Starts a process that leads a group of its own and waits for a signal. Must be called before the guard is made, whose
// pipe it would inherit.
pid_t Sleeper() {
  const pid_t pid = fork();
  if (pid == 0) {
    for (;;) pause();
  }
  EXPECT_EQ(setpgid(pid, pid), 0);
  return pid;
}

// Returns the signal that ended `pid`.
int SignalOf(pid_t pid) {
  pollfd gone = {OpenPidFd(pid), POLLIN, 0};
  if (poll(&gone, 1, kHangMs) != 1) kill(pid, SIGUSR1);
  close(gone.fd);
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

void Announce(const Guard& guard, pid_t group) {
  const Guard::Record record = {group, 1};
  ASSERT_EQ(write(guard.fd(), &record, sizeof record), static_cast<ssize_t>(sizeof record));
}

TEST(Guard, KillsTheGroupsItKnowsWhenItsPipeEnds) {
  const pid_t known = Sleeper(), forgotten = Sleeper();
  auto guard = Guard::Fork(RandomHex(8), RandomHex(16)).value();
  Announce(*guard, known);
  Announce(*guard, forgotten);
  guard->Forget(forgotten);
  guard->Finish();
  EXPECT_EQ(SignalOf(known), SIGKILL);
  ASSERT_EQ(kill(forgotten, SIGTERM), 0);
  EXPECT_EQ(SignalOf(forgotten), SIGTERM);
}

// Nobody may end it together with the launcher by a name or command line that both have.
TEST(Guard, HasANameOfItsOwn) {
  const std::string run_id = RandomHex(8);
  auto guard = Guard::Fork(run_id, RandomHex(16)).value();
  const std::string folder = "/proc/" + std::to_string(guard->pid());
  EXPECT_EQ(ReadKernelFile(folder + "/comm").value(), "run-guard\n");
  EXPECT_EQ(ReadKernelFile(folder + "/cmdline").value().c_str(), Guard::Title(run_id));
  EXPECT_EQ(Guard::Title(run_id).find("muster"), std::string::npos);
  guard->Finish();
}

TEST(Guard, HoldsNothingOfTheLaunchers) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  auto guard = Guard::Fork(RandomHex(8), RandomHex(16)).value();
  close(ends[1]);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);  // end of file, not "nothing yet": no other process has the writing end
  close(ends[0]);
  guard->Finish();
}

TEST(Guard, HearsNeitherCtrlCNorTheClosingOfTheTerminal) {
  const pid_t known = Sleeper();
  auto guard = Guard::Fork(RandomHex(8), RandomHex(16)).value();
  const int process = OpenPidFd(guard->pid());
  EXPECT_EQ(getpgid(guard->pid()), guard->pid());
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ASSERT_EQ(kill(guard->pid(), number), 0);
  Announce(*guard, known);
  guard->Finish();
  EXPECT_EQ(SignalOf(known), SIGKILL);  // the guard was still there to kill it
  pollfd gone = {process, POLLIN, 0};
  EXPECT_EQ(poll(&gone, 1, kHangMs), 1);
  close(process);
}

}  // namespace
}  // namespace muster::guard_test
