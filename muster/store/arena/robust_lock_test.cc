#include "muster/store/arena/robust_lock.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <vector>

#include "absl/time/clock.h"
#include "muster/base/check.h"

namespace muster::robust_lock_test {
namespace {

constexpr absl::Duration kPatience = absl::Milliseconds(50);

// Three mutexes in memory that forked processes share.
class RobustLockTest : public ::testing::Test, public LockedMemory {
 protected:
  RobustLockTest()
      : mutexes_(static_cast<pthread_mutex_t*>(
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    MUSTER_CHECK(mutexes_ != MAP_FAILED);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    for (int i = 0; i < kMutexes; ++i) pthread_mutex_init(&mutexes_[i], &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  ~RobustLockTest() override { munmap(mutexes_, kBytes); }

  void ForEachMutex(absl::FunctionRef<void(pthread_mutex_t*)> take) override {
    for (int i = 0; i < kMutexes; ++i) take(&mutexes_[i]);
  }
  bool MayKill(pid_t process) override { return may_kill_(process); }

  // Starts a process that locks a mutex and stops itself. When it goes on, it unlocks and ends with 0.
  pid_t StartStopped(int mutex) {
    const pid_t child = fork();
    if (child == 0) {
      pthread_mutex_lock(&mutexes_[mutex]);
      raise(SIGSTOP);
      pthread_mutex_unlock(&mutexes_[mutex]);
      _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, WUNTRACED), child);
    EXPECT_TRUE(WIFSTOPPED(status));
    return child;
  }
  // Returns what a lock of the mutex answers once nobody holds it; EBUSY if that doesn't happen in 20 s. It tries again
  // and again: the thread sanitizer knows dead owners only from pthread_mutex_lock and _trylock.
  int LockWhenFree(int mutex) {
    const absl::Time until = absl::Now() + absl::Seconds(20);
    int locked = pthread_mutex_trylock(&mutexes_[mutex]);
    for (; locked == EBUSY && absl::Now() < until; locked = pthread_mutex_trylock(&mutexes_[mutex])) sched_yield();
    return locked;
  }
  void Unlock(int mutex, int locked) {
    if (locked == EOWNERDEAD) pthread_mutex_consistent(&mutexes_[mutex]);
    pthread_mutex_unlock(&mutexes_[mutex]);
  }

  static constexpr int kMutexes = 3;
  static constexpr size_t kBytes = 4096;
  pthread_mutex_t* const mutexes_;
  std::function<bool(pid_t)> may_kill_ = [](pid_t) { return true; };
};

TEST_F(RobustLockTest, AFreeMutexIsTakenAtOnce) {
  const int locked = LockRobust(&mutexes_[0], *this, kPatience);
  EXPECT_EQ(locked, 0);
  Unlock(0, locked);
}

TEST_F(RobustLockTest, StoppedHoldersOfOtherMutexesShareTheLimit) {
  std::vector<pid_t> children;
  for (int i = 0; i < kMutexes; ++i) children.push_back(StartStopped(i));
  const int locked = LockRobust(&mutexes_[0], *this, kPatience);
  EXPECT_EQ(locked, EOWNERDEAD);
  Unlock(0, locked);
  // Had each its own limit, the others would still be stopped; the deadline is a safety net.
  for (int i = 1; i < kMutexes; ++i) {
    const int others = LockWhenFree(i);
    EXPECT_EQ(others, EOWNERDEAD) << i;
    if (others == EOWNERDEAD) Unlock(i, others);
  }
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

TEST_F(RobustLockTest, AHolderThatMayNotBeKilledIsWaitedFor) {
  const pid_t child = StartStopped(1);
  int asked = 0;
  may_kill_ = [&asked](pid_t process) {
    if (++asked == 3) kill(process, SIGCONT);
    return false;
  };
  const int locked = LockRobust(&mutexes_[1], *this, kPatience);
  EXPECT_EQ(locked, 0) << "it has unlocked it itself";
  EXPECT_GE(asked, 3);
  Unlock(1, locked);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(RobustLockTest, AHolderThatGoesOnInTimeIsLeftAlone) {
  const pid_t child = StartStopped(2);
  may_kill_ = [](pid_t) {
    ADD_FAILURE() << "its time isn't over";
    return false;
  };
  kill(child, SIGCONT);
  const int locked = LockRobust(&mutexes_[2], *this, absl::Hours(1));
  EXPECT_EQ(locked, 0);
  Unlock(2, locked);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace muster::robust_lock_test
