// Tests the registry as it is used: by several threads and processes at once, some of which are killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "muster/launch/registry/registry.h"
#include "muster/launch/testing/registry_fixture.h"

namespace muster::registry_processes_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

// Children open registries of their own, so the parent has none open when it forks.
class RegistryProcessesTest : public RegistryFixture {
 protected:
  // Runs `body` in `count` processes that begin at the same time; returns their results, in order.
  static std::vector<int> AtOnce(int count, const std::function<int(int which)>& body) {
    int begin[2];
    EXPECT_EQ(pipe2(begin, O_CLOEXEC), 0);
    std::vector<pid_t> children;
    for (int which = 0; which < count; ++which) {
      const pid_t child = fork();
      if (child == 0) {
        close(begin[1]);
        char byte;
        if (read(begin[0], &byte, 1) != 0) _exit(100);  // end of file: the parent lets all of them start
        _exit(body(which));
      }
      children.push_back(child);
    }
    close(begin[0]);
    close(begin[1]);
    std::vector<int> codes;
    for (const pid_t child : children) {
      int status = 0;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    return codes;
  }

  // Writes one experiment after the other, in the same steps, and a byte to `said` when one has been created. Doesn't
  // return.
  void WriteForEver(int said) {
    auto registry = Registry::Open(home_, clock_);
    if (!registry.ok()) _exit(1);
    for (int round = 0;; ++round) {
      const auto number = (*registry)->Create(round % 2 == 0 ? Grid(3) : Single());
      if (!number.ok() || write(said, "c", 1) != 1) _exit(2);
      const ExperimentId id{*number, round % 2 == 0 ? 2 : 0};
      TaskRecord first{.task = {kWorkerJob, 0}}, second{.task = {kWorkerJob, 1}};
      for (const RunState state : {RunState::kPending, RunState::kStarting, RunState::kRunning, RunState::kFinished}) {
        first.state = second.state = state;
        ++first.restarts;
        ++second.restarts;
        auto run = (*registry)->Run(id);
        if (!run.ok()) _exit(3);
        run->state = state;
        if (state == RunState::kStarting && !(*registry)->TakeGpus(id, 2, {0, 1}).ok()) _exit(4);
        if (!(*registry)->SetRun(*run, {first, second}).ok()) _exit(5);
      }
    }
  }

  // Checks what is true between any two calls.
  void ExpectWhole(size_t at_least) {
    EXPECT_THAT(Sql("PRAGMA integrity_check"), ElementsAre("ok"));
    EXPECT_GE(Sql("SELECT number FROM experiments").size(), at_least);
    EXPECT_THAT(Sql("SELECT e.number FROM experiments e WHERE e.runs + 1 !="
                    " (SELECT count(*) FROM runs r WHERE r.number = e.number)"),
                IsEmpty());
    EXPECT_THAT(Sql("SELECT number FROM runs WHERE (ended_us IS NULL) = (state IN ('FINISHED', 'FAILED', 'KILLED'))"),
                IsEmpty());
    EXPECT_THAT(Sql("SELECT number FROM tasks GROUP BY number, run"
                    " HAVING count(*) != 2 OR min(restarts) != max(restarts)"),
                IsEmpty());
    EXPECT_THAT(Sql("SELECT t.number FROM tasks t JOIN runs r ON r.number = t.number AND r.run = t.run"
                    " WHERE t.state != r.state"),
                IsEmpty());
    EXPECT_THAT(Sql("SELECT number FROM gpu_leases GROUP BY number, run HAVING count(*) != 2"), IsEmpty());
    EXPECT_THAT(Sql("SELECT g.number FROM gpu_leases g JOIN runs r ON r.number = g.number AND r.run = g.run"
                    " WHERE r.ended_us IS NOT NULL"),
                IsEmpty());
  }
};

TEST_F(RegistryProcessesTest, ThreadsWithTheirOwnGetDifferentNumbers) {
  constexpr int kThreads = 3, kEach = 10;
  std::vector<std::vector<int64_t>> numbers(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<int64_t>& mine : numbers) {
    threads.emplace_back([this, &mine] {
      auto registry = Registry::Open(home_, clock_);
      ASSERT_TRUE(registry.ok()) << registry.status();
      for (int i = 0; i < kEach; ++i) {
        mine.push_back(Create(**registry, Single()));
        Bring(**registry, {mine.back(), 0}, RunState::kFinished);
        const auto open = (*registry)->List({.only_open = true, .last = 5});
        EXPECT_TRUE(open.ok()) << open.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<int64_t> all;
  for (const std::vector<int64_t>& mine : numbers) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), static_cast<size_t>(kThreads * kEach));
  EXPECT_EQ(*all.rbegin(), kThreads * kEach);
  EXPECT_THAT(*Open()->List({.only_open = true}), IsEmpty());
  ExpectWhole(all.size());
}

TEST_F(RegistryProcessesTest, ProcessesMakeItTogether) {
  constexpr int kProcesses = 8;
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(PosixFileSystem().RemoveTree(home_.path()).ok());
    ASSERT_TRUE(PosixFileSystem().CreateDirectory(home_.path()).ok());
    const std::vector<int> codes = AtOnce(kProcesses, [this](int /*which*/) {
      auto registry = Registry::Open(home_, clock_);
      if (!registry.ok()) return 101;
      const auto number = (*registry)->Create(Single());
      return number.ok() ? static_cast<int>(*number) : 102;
    });
    const std::set<int> numbers(codes.begin(), codes.end());
    EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  }
}

// An owner makes a file for each of its GPUs; making one twice fails.
TEST_F(RegistryProcessesTest, NoGpuIsGivenTwice) {
  constexpr int kProcesses = 4, kTimes = 40;
  {
    auto registry = Open();
    for (int i = 0; i < kProcesses; ++i) Create(*registry, Single());
  }
  const std::vector<int> codes = AtOnce(kProcesses, [this](int which) {
    auto registry = Registry::Open(home_, clock_);
    if (!registry.ok()) return 101;
    const ExperimentId id{which + 1, 0};
    for (int had = 0; had < kTimes;) {
      const auto gpus = (*registry)->TakeGpus(id, 2, {0, 1, 2, 3, 4});
      if (!gpus.ok()) return 102;
      if (gpus->empty()) {
        sched_yield();
        continue;
      }
      if (gpus->size() != 2) return 103;
      for (const int gpu : *gpus) {
        const int fd = open(JoinPath(home_.path(), std::to_string(gpu)).c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0) return 104;
        close(fd);
      }
      sched_yield();
      for (const int gpu : *gpus) unlink(JoinPath(home_.path(), std::to_string(gpu)).c_str());
      if (!(*registry)->ReleaseGpus(id).ok()) return 105;
      ++had;
    }
    return 0;
  });
  EXPECT_EQ(codes, std::vector<int>(kProcesses, 0));
  EXPECT_THAT(Sql("SELECT * FROM gpu_leases"), IsEmpty());
}

TEST_F(RegistryProcessesTest, AKilledWriterLeavesItWhole) {
  constexpr int kRounds = 40;
  size_t created = 0;
  for (int round = 0; round < kRounds; ++round) {
    int said[2];
    ASSERT_EQ(pipe2(said, O_CLOEXEC), 0);
    const pid_t writer = fork();
    if (writer == 0) WriteForEver(said[1]);
    ASSERT_GT(writer, 0);
    close(said[1]);
    // Kills at another place each time: after that many experiments, in whatever comes next.
    char byte;
    for (int i = 0; i <= round % 4; ++i) {
      ASSERT_EQ(read(said[0], &byte, 1), 1) << "round " << round;
      ++created;
    }
    for (int i = 0; i < round * 7; ++i) sched_yield();
    ASSERT_EQ(kill(writer, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    EXPECT_TRUE(WIFSIGNALED(status)) << "exit code " << WEXITSTATUS(status);
    while (read(said[0], &byte, 1) == 1) ++created;
    close(said[0]);

    ExpectWhole(created);
    auto registry = Open();
    ASSERT_NE(registry, nullptr);
    ASSERT_TRUE(registry->Reconcile().ok());
    EXPECT_THAT(*registry->List({.only_open = true}), IsEmpty());
    EXPECT_THAT(Sql("SELECT * FROM gpu_leases"), IsEmpty());
  }
}

// Both processes may find that the same supervisor is gone, but only one reports it.
TEST_F(RegistryProcessesTest, ALossIsFoundOnce) {
  constexpr int kProcesses = 4, kExperiments = 20;
  {
    auto registry = Open();
    for (int i = 0; i < kExperiments; ++i) Create(*registry, Single());
  }
  const std::vector<int> found = AtOnce(kProcesses, [this](int /*which*/) {
    auto registry = Registry::Open(home_, clock_);
    if (!registry.ok()) return 101;
    const auto lost = (*registry)->Reconcile();
    return lost.ok() ? static_cast<int>(lost->size()) : 102;
  });
  int sum = 0;
  for (const int one : found) sum += one;
  EXPECT_EQ(sum, kExperiments);
}

}  // namespace
}  // namespace muster::registry_processes_test
