#include "muster/base/os/available_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

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
  AvailableMemory Read() const { return MemoryToTake(root_.path() + "/", 0); }

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

TEST_F(AvailableMemoryTest, TheLimitOfTheTaskCountsWhatItHasAlready) {
  const std::string page_counts = "900000 " + std::to_string(16 * kMiB / static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  root_.Write("proc/self/statm", page_counts + " 1 1 0 1 0\n");
  const auto read = [&](uint64_t limit) { return MemoryToTake(root_.path() + "/", limit); };
  EXPECT_EQ(read(100 * kMiB).bytes, 84 * kMiB);
  EXPECT_EQ(read(100 * kMiB).of_limit, 100 * kMiB);
  EXPECT_EQ(read(1).bytes, 1u) << "0 would mean that nothing is known";
  for (const uint64_t none : {uint64_t{0}, 5000 * kMiB}) {
    EXPECT_EQ(read(none).bytes, 1000 * kMiB);
    EXPECT_EQ(read(none).of_limit, 0u);
  }
  root_.Write("proc/self/cgroup", "0::/\n");
  Group("", std::to_string(50 * kMiB), 0, 0);
  EXPECT_TRUE(read(100 * kMiB).of_a_group) << "the group has less";
}

TEST(ResidentLimitTest, IsThatOfTheProcess) {
  const uint64_t before = ResidentLimit();
  SetResidentLimit(70 * kMiB);
  EXPECT_EQ(ResidentLimit(), 70 * kMiB);
  EXPECT_LE(MemoryToTake().bytes, 70 * kMiB);
  SetResidentLimit(before == 0 ? RLIM_INFINITY : before);
  EXPECT_EQ(ResidentLimit(), before);
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
