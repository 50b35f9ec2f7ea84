#include "muster/base/os/process_identity.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::process_identity_test {
namespace {

TEST(ProcessIdentity, AProcessIsTheSameWheneverOneLooks) {
  const auto self = IdentifyProcess(getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->pid, getpid());
  EXPECT_GT(self->start, 0u);
  EXPECT_EQ(IdentifyProcess(getpid()), self);
  EXPECT_NE(PidNamespace(), 0u);
}

TEST(ProcessIdentity, AStoppedProcessIsEnded) {
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  const auto identity = IdentifyProcess(child);
  ASSERT_TRUE(identity);
  bool gone = EndProcess(*identity);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(info.si_status, SIGKILL);
  EXPECT_TRUE(gone || EndProcess(*identity)) << "a zombie holds and writes nothing any more";
  waitpid(child, &status, 0);
  EXPECT_TRUE(EndProcess(*identity));
  EXPECT_FALSE(IdentifyProcess(child));
}

TEST(ProcessIdentity, AnotherProcessWithTheSameNumberIsLeftAlone) {
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  auto identity = *IdentifyProcess(child);
  ++identity.start;
  EXPECT_TRUE(EndProcess(identity)) << "the one that was meant is gone";
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, WNOHANG), 0) << "and this one lives";
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
}

}  // namespace
}  // namespace muster::process_identity_test
