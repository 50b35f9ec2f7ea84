#include "muster/launch/watch/usage.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "muster/launch/testing/fake_proc.h"

namespace muster::usage_test {
namespace {

using ::testing::ElementsAre, ::testing::Pair;

const absl::Time kBegin = absl::FromUnixSeconds(1000);

int64_t Ticks(double seconds) { return static_cast<int64_t>(seconds * static_cast<double>(sysconf(_SC_CLK_TCK))); }
int64_t Pages(int64_t bytes) { return bytes / sysconf(_SC_PAGESIZE); }

TaskRecord Task(pid_t pid) {
  TaskRecord task;
  task.pid = pid;
  return task;
}

class UsageReaderTest : public ::testing::Test {
 protected:
  UsageReader NewReader(const std::string& gpu_program = "/nonexistent") const {
    return UsageReader({.machine_mem_bytes = int64_t{8} << 30, .proc = proc_.path(), .gpu_program = gpu_program});
  }
  const FakeProc proc_ = {};
};

TEST_F(UsageReaderTest, CpuIsOfOneCoreBetweenTwoReadings) {
  UsageReader reader = NewReader();
  proc_.Set({.pid = 10, .group = 10, .user_ticks = Ticks(5), .pages = Pages(1 << 20)});
  proc_.Set({.pid = 11, .parent = 10, .group = 10, .user_ticks = Ticks(1), .pages = Pages(2 << 20)});
  TaskUsage usage = reader.Read({{"4.master", Task(10)}}, kBegin)["4.master"];
  EXPECT_EQ(usage.cpu_percent, std::nullopt);
  EXPECT_EQ(usage.mem_bytes, 3 << 20);
  EXPECT_EQ(usage.mem_limit, int64_t{8} << 30);
  proc_.Set({.pid = 10, .group = 10, .user_ticks = Ticks(7), .pages = Pages(1 << 20)});
  proc_.Set({.pid = 11, .parent = 10, .group = 10, .user_ticks = Ticks(1), .system_ticks = Ticks(1)});
  usage = reader.Read({{"4.master", Task(10)}}, kBegin + absl::Seconds(2))["4.master"];
  EXPECT_EQ(usage.cpu_percent, 150);
  EXPECT_EQ(usage.mem_bytes, 1 << 20);
}

TEST_F(UsageReaderTest, AnotherLifeOfATaskBeginsAnew) {
  UsageReader reader = NewReader();
  proc_.Set({.pid = 10, .group = 10, .user_ticks = Ticks(5)});
  proc_.Set({.pid = 20, .group = 20, .user_ticks = Ticks(9)});
  reader.Read({{"4.ps.1", Task(10)}}, kBegin);
  EXPECT_EQ(reader.Read({{"4.ps.1", Task(20)}}, kBegin + absl::Seconds(1))["4.ps.1"].cpu_percent, std::nullopt);
  EXPECT_EQ(reader.Read({{"4.ps.1", Task(20)}}, kBegin + absl::Seconds(2))["4.ps.1"].cpu_percent, 0);
  reader.Read({}, kBegin + absl::Seconds(3));
  EXPECT_EQ(reader.Read({{"4.ps.1", Task(20)}}, kBegin + absl::Seconds(4))["4.ps.1"].cpu_percent, std::nullopt)
      << "forgotten while it did not run";
}

TEST_F(UsageReaderTest, TimeThatIsLostIsNotLessThanNothing) {
  UsageReader reader = NewReader();
  proc_.Set({.pid = 10, .group = 10, .user_ticks = Ticks(5)});
  reader.Read({{"4", Task(10)}}, kBegin);
  proc_.Set({.pid = 10, .group = 10, .user_ticks = Ticks(1)});
  EXPECT_EQ(reader.Read({{"4", Task(10)}}, kBegin + absl::Seconds(1))["4"].cpu_percent, 0);
}

TEST_F(UsageReaderTest, OfATaskOnAHostItSaysWhatWasHeard) {
  UsageReader reader = NewReader();
  TaskRecord task = Task(0);
  task.host = "h1";
  const auto percent = [&](double cpu_seconds, int restarts, absl::Time when) {
    const std::map<std::string, HostUsage> heard = {
        {"4",
         {.cpu_seconds = cpu_seconds,
          .mem_bytes = 5000,
          .gpus = {.count = 2, .percent = 30, .mem_bytes = 6, .mem_total = 7},
          .restarts = restarts,
          .when = when}}};
    const auto usages = reader.Read({{"4", task}}, kBegin, heard);
    EXPECT_EQ(usages.at("4").mem_bytes, 5000);
    EXPECT_EQ(usages.at("4").mem_limit, 0);
    EXPECT_EQ(usages.at("4").gpus, 2);
    EXPECT_EQ(usages.at("4").gpu_percent, 30);
    EXPECT_EQ(usages.at("4").gpu_mem_bytes, 6);
    EXPECT_EQ(usages.at("4").gpu_mem_total, 7);
    return usages.at("4").cpu_percent;
  };
  EXPECT_EQ(percent(1, 0, kBegin), std::nullopt);
  EXPECT_EQ(percent(2, 0, kBegin + absl::Seconds(2)), 50);
  EXPECT_EQ(percent(2, 0, kBegin + absl::Seconds(2)), 50) << "nothing new";
  EXPECT_EQ(percent(1, 1, kBegin + absl::Seconds(3)), std::nullopt) << "another life";
  EXPECT_TRUE(reader.Read({{"4", task}}, kBegin, {}).empty());
}

TEST_F(UsageReaderTest, ACgroupKnowsBetter) {
  proc_.Set({.pid = 10, .group = 10, .user_ticks = Ticks(5), .pages = Pages(1 << 20)});
  proc_.Write("group2/memory.current", "5000\n");
  proc_.Write("group2/memory.stat", "anon 3000\nfile 2000\ninactive_file 1500\n");
  proc_.Write("group2/cpu.stat", "usage_usec 1000000\nuser_usec 900000\n");
  proc_.Write("group1/memory.usage_in_bytes", "700\n");
  proc_.Write("group1/memory.stat", "inactive_file 1\ntotal_inactive_file 200\n");
  TaskRecord second = Task(10), first = Task(10);
  second.cgroup = proc_.path() + "/group2";
  second.mem_limit = 10000;
  first.cgroup = proc_.path() + "/group1";
  UsageReader reader = NewReader();
  const auto usages = reader.Read({{"v2", second}, {"v1", first}}, kBegin);
  EXPECT_EQ(usages.at("v2").mem_bytes, 3500);
  EXPECT_EQ(usages.at("v2").mem_limit, 10000);
  EXPECT_EQ(usages.at("v1").mem_bytes, 500);
  proc_.Write("group2/cpu.stat", "usage_usec 1500000\nuser_usec 900000\n");
  EXPECT_EQ(reader.Read({{"v2", second}}, kBegin + absl::Seconds(1))["v2"].cpu_percent, 50);
}

TEST_F(UsageReaderTest, GpusAreThoseOfTheTask) {
  proc_.Write("smi", "#!/bin/sh\nprintf '0, GPU-a, 20, 1, 10\\n1, GPU-b, 40, 2, 10\\n2, GPU-c, 90, 9, 10\\n'\n");
  const std::string program = proc_.path() + "/smi";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  UsageReader reader = NewReader(program);
  TaskRecord two = Task(10), none = Task(11), lost = Task(12);
  two.gpus = "0,GPU-b";
  lost.gpus = "7";
  const auto usages = reader.Read({{"two", two}, {"none", none}, {"lost", lost}}, kBegin);
  EXPECT_EQ(usages.at("two").gpus, 2);
  EXPECT_EQ(usages.at("two").gpu_percent, 30);
  EXPECT_EQ(usages.at("two").gpu_mem_bytes, 3 << 20);
  EXPECT_EQ(usages.at("two").gpu_mem_total, 20 << 20);
  EXPECT_EQ(usages.at("none").gpu_percent, std::nullopt);
  EXPECT_EQ(usages.at("lost").gpus, 0);
}

TEST_F(UsageReaderTest, ResidentBytesOfSeveralFromOnePass) {
  proc_.Set({.pid = 10, .group = 10, .pages = Pages(1 << 20)});
  proc_.Set({.pid = 11, .parent = 10, .group = 11, .pages = Pages(2 << 20)});
  proc_.Set({.pid = 20, .group = 20, .pages = Pages(4 << 20)});
  EXPECT_THAT(ResidentBytesOf({10, 20, 30}, proc_.path()),
              ElementsAre(Pair(10, 3 << 20), Pair(20, 4 << 20), Pair(30, 0)));
}

TEST(TotalUsage, SumsAndTakesTheMeanOfAllGpus) {
  constexpr int64_t kGb = int64_t{1} << 30;
  TaskUsage one = {.cpu_percent = 50, .mem_bytes = kGb, .mem_limit = 2 * kGb, .gpus = 1, .gpu_percent = 10};
  one.gpu_mem_bytes = 5;
  one.gpu_mem_total = 10;
  TaskUsage three = {.mem_bytes = kGb, .mem_limit = 4 * kGb, .gpus = 3, .gpu_percent = 50};
  three.gpu_mem_bytes = 1;
  three.gpu_mem_total = 30;
  const TaskUsage total = TotalUsage({{"a", one}, {"b", three}}, 16 * kGb);
  EXPECT_EQ(total.cpu_percent, 50);
  EXPECT_EQ(total.mem_bytes, 2 * kGb);
  EXPECT_EQ(total.mem_limit, 6 * kGb);
  EXPECT_EQ(total.gpus, 4);
  EXPECT_EQ(total.gpu_percent, 40);
  EXPECT_EQ(total.gpu_mem_bytes, 6);
  EXPECT_EQ(total.gpu_mem_total, 40);
  EXPECT_EQ(TotalUsage({{"a", one}, {"b", three}}, 3 * kGb).mem_limit, 3 * kGb) << "no more than the machine has";
}

}  // namespace
}  // namespace muster::usage_test
