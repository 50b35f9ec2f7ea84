#include "muster/launch/agent_server/agent_start.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "muster/base/os/uninterrupted.h"

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

}  // namespace
}  // namespace muster::agent_start_test
