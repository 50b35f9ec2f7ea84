#include "muster/launch/system/process_mark.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "muster/launch/system/random_hex.h"

namespace muster::process_mark_test {
namespace {

rlim_t OwnMark() {
  std::ifstream file("/proc/self/limits");
  return MarkIn(std::string(std::istreambuf_iterator<char>(file), {}));
}

// Returns what the function returns in a process of its own.
bool InChild(const std::function<bool()>& check) {
  const pid_t pid = fork();
  if (pid == 0) _exit(check() ? 0 : 1);
  int status = -1;
  return waitpid(pid, &status, 0) == pid && status == 0;
}

TEST(ProcessMarkTest, EveryBackendHasItsOwn) {
  const std::string one = RandomHex(16);
  EXPECT_EQ(MarkOf(one), MarkOf(one));
  EXPECT_NE(MarkOf(one), MarkOf(RandomHex(16)));
  EXPECT_EQ(MarkOf("00000000000000a5ffffffffffffffff"), (rlim_t{1} << 62) | 10) << "of the first 15 digits";
  EXPECT_GT(static_cast<int64_t>(MarkOf("ffffffffffffffff")), 0) << "programs read it as a signed number";
}

TEST(ProcessMarkTest, IsInheritedUntilItIsCleared) {
  const rlim_t mark = MarkOf(RandomHex(16));
  EXPECT_TRUE(InChild([&] {
    SetMark(mark);
    return OwnMark() == mark && InChild([&] {
             setsid();
             return OwnMark() == mark;
           });
  }));
  EXPECT_TRUE(InChild([&] {
    SetMark(mark);
    ClearMark();
    rlimit limit{};
    return OwnMark() == 0 && getrlimit(RLIMIT_RTTIME, &limit) == 0 && limit.rlim_cur == limit.rlim_max;
  }));
  EXPECT_NE(OwnMark(), mark);
}

TEST(ProcessMarkTest, AUsersOwnLimitIsNoMarkAndStays) {
  EXPECT_TRUE(InChild([] {
    const rlimit own = {.rlim_cur = 200000, .rlim_max = 300000};
    if (setrlimit(RLIMIT_RTTIME, &own) != 0) return false;
    SetMark(MarkOf(RandomHex(16)));  // over the hard limit
    ClearMark();
    rlimit limit{};
    return OwnMark() == 0 && getrlimit(RLIMIT_RTTIME, &limit) == 0 && limit.rlim_cur == own.rlim_cur;
  }));
  EXPECT_EQ(MarkIn("Max realtime timeout      unlimited            unlimited            us\n"), 0u);
  EXPECT_EQ(MarkIn(""), 0u);
}

}  // namespace
}  // namespace muster::process_mark_test
