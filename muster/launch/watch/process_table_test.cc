#include "muster/launch/watch/process_table.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>

#include "muster/launch/testing/fake_proc.h"

namespace muster::process_table_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty, ::testing::Pair;

ProcessRow Row(pid_t pid, pid_t parent, pid_t group, pid_t session, int64_t bytes) {
  return {.pid = pid, .parent = parent, .group = group, .session = session, .cpu_seconds = 1, .resident_bytes = bytes};
}

TEST(ProcessTable, ReadsEachProcess) {
  const FakeProc proc;
  proc.Set({.pid = 20,
            .parent = 10,
            .group = 11,
            .session = 12,
            .user_ticks = 1,
            .system_ticks = 2,
            .childrens_user_ticks = 4,
            .childrens_system_ticks = 8,
            .pages = 3,
            .name = "a (strange) 1 2 3 name) S"});
  proc.Write("meminfo", "MemTotal: 1 kB\n");
  proc.Write("21/status", "a process that has gone since");
  proc.Write("22/stat", "22 (cut) S 1");
  const auto rows = ReadProcesses(proc.path());
  ASSERT_EQ(rows.size(), 1U);
  const ProcessRow expected = {.pid = 20,
                               .parent = 10,
                               .group = 11,
                               .session = 12,
                               .cpu_seconds = 15.0 / static_cast<double>(sysconf(_SC_CLK_TCK)),
                               .resident_bytes = 3 * sysconf(_SC_PAGESIZE)};
  EXPECT_EQ(rows[0], expected);
  EXPECT_THAT(ReadProcesses("/nonexistent"), IsEmpty());
}

TEST(ProcessTable, ReadsThisProcessFromTheMachine) {
  const auto rows = ReadProcesses("/proc");
  const auto own = std::find_if(rows.begin(), rows.end(), [](const ProcessRow& row) { return row.pid == getpid(); });
  ASSERT_NE(own, rows.end());
  EXPECT_EQ(own->parent, getppid());
  EXPECT_EQ(own->group, getpgid(0));
  EXPECT_GT(own->resident_bytes, 1 << 20);
}

TEST(ProcessTable, ATaskIsItsGroupItsSessionAndTheirDescendants) {
  const std::vector<ProcessRow> rows = {
      Row(100, 1, 100, 50, 1),                                 // the leader
      Row(101, 100, 100, 50, 2),                               // its child
      Row(102, 1, 100, 50, 4),                                 // of its group, its parent has ended
      Row(103, 102, 103, 103, 8),                              // a child of 102, in a session of its own
      Row(104, 103, 104, 103, 16), Row(105, 1, 105, 100, 32),  // of its session
      Row(200, 1, 200, 50, 64),                                // another task
      Row(300, 1, 300, 50, 128),                               // belongs to no task
      Row(50, 1, 50, 50, 256),                                 // their common parent's session
  };
  EXPECT_THAT(SumsByLeader(rows, {100, 200, 999}),
              ElementsAre(Pair(100, ProcessSums{.cpu_seconds = 6, .resident_bytes = 63}),
                          Pair(200, ProcessSums{.cpu_seconds = 1, .resident_bytes = 64})));
}

TEST(ProcessTable, ATaskBelowAnotherIsNotCountedTwice) {
  const std::vector<ProcessRow> rows = {Row(100, 1, 100, 100, 1), Row(200, 100, 200, 200, 2),
                                        Row(201, 200, 201, 201, 4)};
  EXPECT_THAT(SumsByLeader(rows, {100, 200}),
              ElementsAre(Pair(100, ProcessSums{.cpu_seconds = 1, .resident_bytes = 1}),
                          Pair(200, ProcessSums{.cpu_seconds = 2, .resident_bytes = 6})));
}

TEST(ProcessTable, ParentsInACircleEnd) {
  const std::vector<ProcessRow> rows = {Row(10, 11, 10, 10, 1), Row(11, 10, 11, 11, 2), Row(12, 12, 12, 12, 4)};
  EXPECT_THAT(SumsByLeader(rows, {5}), IsEmpty());
}

}  // namespace
}  // namespace muster::process_table_test
