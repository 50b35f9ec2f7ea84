#include "muster/launch/registry/run_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/base/testing/scratch_folder.h"

namespace muster::run_lock_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

class RunLockTest : public ::testing::Test {
 protected:
  const ScratchFolder folder_;
  const std::string path_ = folder_ / "lock";
};

TEST_F(RunLockTest, IsHeldByOneAtATime) {
  EXPECT_FALSE(RunLock::IsHeld(path_));  // no file exists yet
  EXPECT_FALSE(RunLock::IsHeld(folder_ / "none/lock"));
  {
    const auto lock = RunLock::Take(path_).value();
    EXPECT_TRUE(RunLock::IsHeld(path_));
    EXPECT_TRUE(RunLock::IsHeld(path_));  // checking changed nothing
    const auto second = RunLock::Take(path_);
    EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(second.status().message()), HasSubstr(path_));
    EXPECT_TRUE(RunLock::IsHeld(path_));
  }
  EXPECT_FALSE(RunLock::IsHeld(path_));
  EXPECT_TRUE(RunLock::Take(path_).ok());
}

TEST_F(RunLockTest, NeedsItsFolder) {
  const auto lock = RunLock::Take(folder_ / "none/lock");
  EXPECT_EQ(lock.status().code(), absl::StatusCode::kNotFound) << lock.status();
}

TEST_F(RunLockTest, MovesWithItsOwner) {
  auto lock = RunLock::Take(path_).value();
  const int fd = lock.fd();
  {
    const RunLock moved = std::move(lock);
    EXPECT_EQ(moved.fd(), fd);
    EXPECT_TRUE(RunLock::IsHeld(path_));
  }
  EXPECT_FALSE(RunLock::IsHeld(path_));
}

// As on Lustre that is mounted without -o flock.
template <int kError>
int NoLocks(int /*fd*/, int /*operation*/) {
  errno = kError;
  return -1;
}

TEST_F(RunLockTest, WhereThereAreNoLocksItSaysWhatHas) {
  for (const LockCall call : {NoLocks<ENOSYS>, NoLocks<EOPNOTSUPP>, NoLocks<ENOLCK>}) {
    const absl::Status taken = RunLock::Take(path_, call).status();
    EXPECT_TRUE(absl::IsUnimplemented(taken)) << taken;
    EXPECT_THAT(std::string(taken.message()),
                AllOf(HasSubstr(path_), HasSubstr("set MUSTER_HOME"), HasSubstr("Lustre mounted with -o flock")));
    EXPECT_TRUE(RunLock::IsHeld(path_, call)) << "no supervisor that may live is considered lost";
  }
  EXPECT_FALSE(absl::IsUnimplemented(RunLock::Take(path_, NoLocks<EIO>).status())) << "an error of the disk";
}

// Does what `muster train` and a supervisor do: the child keeps the descriptor, the parent closes its own.
TEST_F(RunLockTest, PassesToAChildAndEndsWithIt) {
  pid_t child = -1;
  {
    auto lock = RunLock::Take(path_).value();
    EXPECT_EQ(fcntl(lock.fd(), F_GETFD) & FD_CLOEXEC, 0);
    child = fork();
    if (child == 0) {
      const RunLock adopted = RunLock::Adopt(lock.fd());
      for (;;) pause();
    }
    ASSERT_GT(child, 0);
  }
  EXPECT_TRUE(RunLock::IsHeld(path_));
  EXPECT_FALSE(RunLock::Take(path_).ok());
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(RunLock::IsHeld(path_));
}

TEST_F(RunLockTest, SurvivesExec) {
  int out[2];
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  pid_t child = -1;
  {
    auto lock = RunLock::Take(path_).value();
    child = fork();
    if (child == 0) {
      dup2(out[0], STDIN_FILENO);  // cat ends when the test closes the other end
      execlp("cat", "cat", static_cast<char*>(nullptr));
      _exit(127);
    }
    ASSERT_GT(child, 0);
  }
  close(out[0]);
  EXPECT_TRUE(RunLock::IsHeld(path_));
  close(out[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_FALSE(RunLock::IsHeld(path_));
}

// `status` and Reconcile check all the time; that must never make another process's Take fail.
TEST_F(RunLockTest, LookingKeepsNobodyFromTakingIt) {
  ASSERT_TRUE(RunLock::Take(path_).ok());  // makes the file
  std::atomic<bool> stop = false;
  std::atomic<int> looks = 0;
  std::thread first([&] {
    while (!stop) {
      RunLock::IsHeld(path_);
      ++looks;
    }
  });
  std::thread second([&] {
    while (!stop) RunLock::IsHeld(path_);
  });
  while (looks == 0) std::this_thread::yield();
  int taken = 0;
  constexpr int kRounds = 300;
  for (int i = 0; i < kRounds; ++i) taken += RunLock::Take(path_).ok() ? 1 : 0;
  stop = true;
  first.join();
  second.join();
  EXPECT_EQ(taken, kRounds);
  EXPECT_FALSE(RunLock::IsHeld(path_));
}

// One of many that try gets it; none is refused while it is free.
TEST_F(RunLockTest, OneOfManyTakersGetsIt) {
  ASSERT_TRUE(RunLock::Take(path_).ok());
  for (int round = 0; round < 20; ++round) {
    constexpr int kTakers = 4;
    std::atomic<int> ready = 0, got = 0, done = 0;
    std::vector<std::thread> takers;
    for (int i = 0; i < kTakers; ++i) {
      takers.emplace_back([&] {
        ++ready;
        while (ready < kTakers) std::this_thread::yield();
        const auto lock = RunLock::Take(path_);
        if (lock.ok()) ++got;
        ++done;
        while (done < kTakers) std::this_thread::yield();  // the holder keeps it until all have tried
      });
    }
    for (std::thread& taker : takers) taker.join();
    EXPECT_EQ(got, 1) << "round " << round;
  }
}

}  // namespace
}  // namespace muster::run_lock_test
