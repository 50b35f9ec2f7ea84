#include "muster/launch/backends/local/thread_share.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "muster/launch/task/task_environment.h"

namespace muster::thread_share_test {
namespace {

Processors Eight(std::optional<int> limit) {
  if (limit.has_value()) return {.count = *limit, .why = "by MUSTER_PROCESSORS"};
  return {.count = 8, .why = "of this machine"};
}

TEST(ThreadShare, IsAnEqualPartOfTheProcessors) {
  const auto share = ThreadShareOf({{kSharersVariable, "3"}}, Eight);
  ASSERT_TRUE(share.has_value());
  EXPECT_EQ(share->threads, 2);
  EXPECT_EQ(share->line,
            "each process computes with 2 threads (8 processors of this machine; processes on this host: 3); "
            "OMP_NUM_THREADS or resources.cpus says otherwise");
}

TEST(ThreadShare, IsOneThreadAtLeast) { EXPECT_EQ(ThreadShareOf({{kSharersVariable, "9"}}, Eight)->threads, 1); }

TEST(ThreadShare, IsOfWhatTheJobMayUseHere) {
  const auto share = ThreadShareOf({{kSharersVariable, "2"}, {kProcessorsVariable, "4"}}, Eight);
  EXPECT_EQ(share->threads, 2);
  EXPECT_NE(share->line.find("4 processors by MUSTER_PROCESSORS"), std::string::npos) << share->line;
}

TEST(ThreadShare, LeavesTheUsersOwnNumber) {
  EXPECT_FALSE(ThreadShareOf({{kSharersVariable, "2"}, {kThreadsVariable, "5"}}, Eight).has_value());
  EXPECT_TRUE(ThreadShareOf({{kSharersVariable, "2"}, {kThreadsVariable, ""}}, Eight).has_value());
}

TEST(ThreadShare, IsForThoseThatAskForIt) {
  EXPECT_FALSE(ThreadShareOf({}, Eight).has_value());
  EXPECT_FALSE(ThreadShareOf({{kSharersVariable, "x"}}, Eight).has_value());
}

}  // namespace
}  // namespace muster::thread_share_test
