#include "muster/launch/agent_server/agent_start.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/launch/backends/local/guard.h"

namespace muster::agent_start_test {
namespace {

// The played agent ends with 3, and leaves behind a process that ends with 9 once the agent has been waited for.
[[noreturn]] void LiveAndLeaveAnOrphan() {
  const pid_t agent = getpid();
  if (fork() == 0) {
    prctl(PR_SET_NAME, "orphan");
    while (kill(agent, 0) == 0) poll(nullptr, 0, 1);
    _exit(9);
  }
  _exit(3);
}

TEST(GoOnInChildTest, WhatATaskHasLeftDoesntDecideTheCode) {
  const pid_t waiting = fork();
  if (waiting == 0) {
    if (!GoOnInChild("test").ok()) _exit(99);
    LiveAndLeaveAnOrphan();
  }
  int wait_status = 0;
  ASSERT_EQ(Uninterrupted([&] { return waitpid(waiting, &wait_status, 0); }), waiting);
  ASSERT_TRUE(WIFEXITED(wait_status));
  EXPECT_EQ(WEXITSTATUS(wait_status), 3);
}

// Returns how a process that waits for `live` has ended; fails the test, and ends it, if it hasn't.
int CodeOfWaiting(void (*live)()) {
  const pid_t waiting = fork();
  if (waiting == 0) {
    if (!GoOnInChild("test").ok()) _exit(99);
    live();
    _exit(98);
  }
  int wait_status = 0;
  pid_t ended = 0;
  for (const absl::Time give_up = RealClock().Now() + absl::Seconds(60); ended == 0 && RealClock().Now() < give_up;
       poll(nullptr, 0, 1))
    ended = waitpid(waiting, &wait_status, WNOHANG);
  if (ended == 0) kill(waiting, SIGKILL);
  EXPECT_EQ(ended, waiting) << "it waits for what tasks have left";
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
}

// A process that a task has left, of which nobody knows: it waits until it is killed. Returns its id.
pid_t LeaveOne() {
  const pid_t left = fork();
  if (left != 0) return left;
  prctl(PR_SET_NAME, "orphan");
  setsid();
  for (;;) pause();
}

// Has a process lose its parent and end, and waits until somebody has waited for it.
void AwaitEndOfAnOrphan() {
  int ends[2];
  pid_t orphan = 0;
  if (pipe(ends) != 0) _exit(97);
  const pid_t parent = fork();
  if (parent == 0) {
    orphan = fork();
    if (orphan != 0 && write(ends[1], &orphan, sizeof orphan) != sizeof orphan) _exit(97);
    _exit(0);
  }
  waitpid(parent, nullptr, 0);
  if (read(ends[0], &orphan, sizeof orphan) != sizeof orphan) _exit(97);
  while (kill(orphan, 0) == 0) poll(nullptr, 0, 1);
  close(ends[0]);
  close(ends[1]);
}

// Otherwise a pod or a step would never end.
TEST(GoOnInChildTest, WhatIsLeftOfAnAgentThatIsKilledWithItsGuardIsEnded) {
  EXPECT_EQ(CodeOfWaiting([] {
              LeaveOne();
              raise(SIGKILL);
            }),
            128 + SIGKILL);
}

// The next life may go on with the tasks of the last one.
TEST(GoOnInChildTest, NothingIsEndedAsLongAsAGuardMayStartAnotherAgent) {
  EXPECT_EQ(CodeOfWaiting([] {
              const pid_t agent = getpid(), left = LeaveOne();
              char name[16] = "";
              prctl(PR_GET_NAME, name);
              if (fork() == 0) {
                prctl(PR_SET_NAME, kGuardName);
                while (kill(agent, 0) == 0) poll(nullptr, 0, 1);
                for (int n = 0; n < 20; ++n) AwaitEndOfAnOrphan();  // each is one more look at what is left
                const bool lives = kill(left, 0) == 0;
                prctl(PR_SET_NAME, name);
                _exit(lives ? 7 : 8);
              }
              _exit(3);
            }),
            7);
}

}  // namespace
}  // namespace muster::agent_start_test
