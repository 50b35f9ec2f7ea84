#include "muster/base/os/available_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "muster/base/testing/scratch_folder.h"

namespace muster::available_memory_test {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class AvailableMemoryTest : public ::testing::Test {
 protected:
  AvailableMemoryTest() {
    root_.Write("proc/meminfo", "MemTotal:  9000000 kB\nMemFree: 1 kB\nMemAvailable:  1024000 kB\n");
  }
  void Group(const std::string& folder, const std::string& limit, uint64_t used, uint64_t cached) {
    root_.Write("sys/fs/cgroup" + folder + "/memory.max", limit + "\n");
    root_.Write("sys/fs/cgroup" + folder + "/memory.current", std::to_string(used) + "\n");
    root_.Write("sys/fs/cgroup" + folder + "/memory.stat", "anon 1\ninactive_file " + std::to_string(cached) + "\n");
  }
  AvailableMemory Read() const { return MemoryToTake(root_.path() + "/"); }

  const ScratchFolder root_;
};

TEST_F(AvailableMemoryTest, WithoutAGroupItIsTheMachines) {
  EXPECT_EQ(Read().bytes, 1000 * kMiB);
  EXPECT_FALSE(Read().of_a_group);
}

TEST_F(AvailableMemoryTest, AGroupsLimitIsLowerAndItsFileCacheCountsAsFree) {
  root_.Write("proc/self/cgroup", "0::/jobs/one\n");
  Group("/jobs/one", std::to_string(100 * kMiB), 60 * kMiB, 20 * kMiB);
  EXPECT_EQ(Read().bytes, 60 * kMiB);
  EXPECT_TRUE(Read().of_a_group);
  Group("/jobs", std::to_string(50 * kMiB), 45 * kMiB, 0);
  EXPECT_EQ(Read().bytes, 5 * kMiB) << "of the group above it";
  Group("/jobs", "max", 45 * kMiB, 0);
  EXPECT_EQ(Read().bytes, 60 * kMiB);
  Group("/jobs/one", std::to_string(5000 * kMiB), 60 * kMiB, 0);
  EXPECT_EQ(Read().bytes, 1000 * kMiB) << "the machine has less";
}

TEST_F(AvailableMemoryTest, AFullGroupHasNextToNothing) {
  root_.Write("proc/self/cgroup", "0::/\n");
  Group("", std::to_string(10 * kMiB), 11 * kMiB, 0);
  EXPECT_EQ(Read().bytes, 1u) << "0 would mean that nothing is known";
}

TEST_F(AvailableMemoryTest, VersionOneOfTheGroups) {
  root_.Write("proc/self/cgroup", "11:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/y\n");
  root_.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(100 * kMiB));
  root_.Write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(30 * kMiB));
  root_.Write("sys/fs/cgroup/memory/memory.stat", "cache 7\ntotal_inactive_file " + std::to_string(10 * kMiB) + "\n");
  EXPECT_EQ(Read().bytes, 80 * kMiB) << "in a container the group lies at the top";
  root_.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(Read().bytes, 1000 * kMiB);
}

}  // namespace
}  // namespace muster::available_memory_test
