#include "muster/base/net/descriptor_passing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

namespace muster::descriptor_passing_test {
namespace {

class DescriptorPassingTest : public ::testing::Test {
 protected:
  DescriptorPassingTest() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_), 0);
    EXPECT_EQ(pipe2(pipe_, O_CLOEXEC), 0);
  }
  ~DescriptorPassingTest() override {
    CloseSender();
    close(ends_[1]);
    for (const int fd : pipe_) close(fd);
  }
  void CloseSender() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }

  int ends_[2] = {-1, -1};
  int pipe_[2] = {-1, -1};
};

TEST_F(DescriptorPassingTest, TheOtherSideHasTheSameFileUnderADescriptorOfItsOwn) {
  ASSERT_TRUE(SendDescriptor(ends_[0], pipe_[1]));
  const int fd = ReceiveDescriptor(ends_[1]);
  ASSERT_GE(fd, 0);
  EXPECT_NE(fd, pipe_[1]);
  EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(write(fd, "x", 1), 1);
  EXPECT_EQ(close(fd), 0);
  char byte = 0;
  EXPECT_EQ(read(pipe_[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(fcntl(pipe_[1], F_GETFD), FD_CLOEXEC) << "the sender's is still its own";
}

int interrupted_sender = -1;

// The signal's handler itself sends the descriptor, so it arrives during the wait. (A signal before the wait has begun
// proves nothing; the next round tries again.)
TEST_F(DescriptorPassingTest, ASignalDoesNotEndTheWaiting) {
  for (int round = 0; round < 20; ++round) {
    interrupted_sender = ends_[0];
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) { static_cast<void>(SendDescriptor(interrupted_sender, STDIN_FILENO)); };
    ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
    const timeval patience = {.tv_sec = 60, .tv_usec = 0};
    ASSERT_EQ(setsockopt(ends_[1], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    const itimerval soon = {.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 1000}};
    ASSERT_EQ(setitimer(ITIMER_REAL, &soon, nullptr), 0);
    const int fd = ReceiveDescriptor(ends_[1]);
    EXPECT_GE(fd, 0);
    close(fd);
    ASSERT_EQ(sigaction(SIGALRM, &before, nullptr), 0);
  }
}

TEST_F(DescriptorPassingTest, SomethingElseIsNone) {
  ASSERT_EQ(send(ends_[0], "x", 1, 0), 1);
  EXPECT_EQ(ReceiveDescriptor(ends_[1]), -1);
}

TEST_F(DescriptorPassingTest, WhoHasGoneGivesNoneAndTakesNone) {
  CloseSender();
  EXPECT_EQ(ReceiveDescriptor(ends_[1]), -1);
  EXPECT_FALSE(SendDescriptor(ends_[1], pipe_[0]));
  EXPECT_FALSE(SendDescriptor(pipe_[0], pipe_[1])) << "no socket at all";
}

}  // namespace
}  // namespace muster::descriptor_passing_test
