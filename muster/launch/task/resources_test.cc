#include "muster/launch/task/resources.h"

#include <gmock/gmock.h>

#include <regex>

#include "muster/base/files/file_system.h"
#include "muster/base/os/processors.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::resources_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

constexpr int64_t kMb = 1 << 20;
constexpr int64_t kGb = 1 << 30;

TEST(Resources, OwnOnesWinOverDefaultsOneByOne) {
  const Resources defaults{.cpus = 2, .mem_bytes = kGb, .gpus = 4};
  const Resources own{.cpus = 1.5, .gpus = 0};
  EXPECT_EQ(Merged(own, defaults), (Resources{.cpus = 1.5, .mem_bytes = kGb, .gpus = 0}));
  EXPECT_EQ(Merged({}, defaults), defaults);
  EXPECT_EQ(Merged(own, {}), own);
}

TEST(ParseMemory, ABareNumberIsMegabytes) {
  std::string warning;
  EXPECT_EQ(ParseMemory("16384", &warning).value(), 16 * kGb);
  EXPECT_EQ(ParseMemory("64", &warning).value(), 64 * kMb);
  EXPECT_EQ(warning, "");
}

TEST(ParseMemory, UnitsArePowersOf1024) {
  std::string warning;
  for (const char* text : {"16GB", "16gb", "16 GB", "16GiB", "16G", "16.0GB", "16384MB", "16384M"})
    EXPECT_EQ(ParseMemory(text, &warning).value_or(-1), 16 * kGb) << text;
  EXPECT_EQ(ParseMemory("1.5GB", &warning).value(), 1536 * kMb);
  EXPECT_EQ(ParseMemory("300KB", &warning).value(), 300 << 10);
  EXPECT_EQ(ParseMemory("2TB", nullptr).value(), 2048 * kGb);
  EXPECT_EQ(ParseMemory("1MB", &warning).value(), kMb);
  EXPECT_EQ(warning, "");
}

TEST(ParseMemory, WarnsOfBareNumbersThatMeantGigabytes) {
  std::string warning;
  EXPECT_EQ(ParseMemory("16", &warning).value(), 16 * kMb);
  EXPECT_EQ(warning, "16 is 16 MB, a bare number being MB; for GB write 16GB");
  EXPECT_EQ(ParseMemory("16", nullptr).value(), 16 * kMb);
}

TEST(ParseMemory, RefusesWhatIsNoAmount) {
  for (const char* text : {"", "0", "0GB", "-1", "-5GB", "lots", "GB", "1..5GB", "1.GB", ".5GB", "16XB", "16GBs", "16 ",
                           "16  GB", "1e3", "nan", "99999999999999TB", "16,5GB", "0.0000001"}) {
    const auto parsed = ParseMemory(text, nullptr);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(kMemoryForms)) << text;
  }
}

TEST(ParseMemory, ThePatternOfTheSchemaSaysTheSame) {
  const std::regex pattern(kMemoryPattern);
  for (const char* text : {"16384", "1.5", "16GB", "16gb", "16 GB", "16GiB", "16G", "300KB", "1TB", "5k"}) {
    EXPECT_TRUE(std::regex_match(text, pattern)) << text;
    EXPECT_TRUE(ParseMemory(text, nullptr).ok()) << text;
  }
  for (const char* text : {"", "-1", "lots", "GB", "1..5GB", "1.GB", ".5GB", "16XB", "16GBs", "16 ", "16  GB", "1e3"}) {
    EXPECT_FALSE(std::regex_match(text, pattern)) << text;
    EXPECT_FALSE(ParseMemory(text, nullptr).ok()) << text;
  }
}

TEST(MemoryText, IsShort) {
  EXPECT_EQ(MemoryText(16 * kGb), "16.0 GB");
  EXPECT_EQ(MemoryText(1536 * kMb), "1.5 GB");
  EXPECT_EQ(MemoryText(512 * kMb), "512 MB");
  EXPECT_EQ(MemoryText(300 << 10), "300 KB");
  EXPECT_EQ(MemoryText(12), "12 B");
}

class ThisMachineTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) { root_.Write(path, text); }

  const ScratchFolder root_;
  const MachineFolders folders_ = {.proc = root_ / "proc", .cgroups = root_ / "cgroup", .gpus = root_ / "gpus"};
};

TEST_F(ThisMachineTest, HasWhatTheKernelSays) {
  Write("proc/meminfo", "MemTotal:       16384 kB\nMemFree:        100 kB\n");
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(root_ / "gpus/0000:17:00.0").ok());
  const Machine machine = ThisMachine(folders_);
  EXPECT_EQ(machine.cores, UsableProcessors({}, {.proc = folders_.proc, .cgroups = folders_.cgroups}).count);
  EXPECT_EQ(machine.mem_bytes, 16 * kMb);
  EXPECT_EQ(machine.gpus, 1);
}

TEST_F(ThisMachineTest, ACgroupMayHaveLessAndSoMayOneAboveIt) {
  Write("proc/meminfo", "MemTotal:       16384 kB\n");
  Write("proc/self/cgroup", "0::/outer/inner\n");
  Write("cgroup/outer/memory.max", "4194304\n");
  Write("cgroup/outer/inner/memory.max", "max\n");
  Write("cgroup/outer/inner/cpu.max", "50000 100000\n");
  const Machine machine = ThisMachine(folders_);
  EXPECT_EQ(machine.mem_bytes, 4 * kMb);
  EXPECT_EQ(machine.cores, 1);  // half a core still has to run on one
}

TEST_F(ThisMachineTest, UnlimitedCgroupsAndNonsenseInThemChangeNothing) {
  Write("proc/meminfo", "MemTotal:       16384 kB\n");
  Write("proc/self/cgroup", "12:memory:/old\n0::/\n");
  Write("cgroup/memory.max", "many\n");
  Write("cgroup/cpu.max", "max 100000\n");
  const Machine machine = ThisMachine(folders_);
  EXPECT_EQ(machine.mem_bytes, 16 * kMb);
  EXPECT_EQ(machine.cores, UsableProcessors({}, {.proc = folders_.proc, .cgroups = folders_.cgroups}).count);
}

TEST_F(ThisMachineTest, NothingToReadIsNoMemoryKnown) { EXPECT_EQ(ThisMachine(folders_).mem_bytes, 0); }

TEST(LacksFor, NamesEveryLack) {
  const Machine machine{.cores = 8, .mem_bytes = 16 * kGb, .gpus = 0};
  EXPECT_EQ(LacksFor({}, machine), "");
  EXPECT_EQ(LacksFor({.cpus = 8, .mem_bytes = 16 * kGb, .gpus = 0}, machine), "");
  EXPECT_EQ(LacksFor({.gpus = 4}, machine), "4 gpus, this machine has 0; --no-gpus runs without");
  EXPECT_EQ(LacksFor({.cpus = 8.5}, machine), "8.5 cpus, this machine has 8");
  EXPECT_EQ(LacksFor({.mem_bytes = 32 * kGb}, machine), "32.0 GB of memory, this machine has 16.0 GB");
  EXPECT_THAT(LacksFor({.cpus = 9, .mem_bytes = 17 * kGb, .gpus = 1}, machine),
              AllOf(HasSubstr("9 cpus"), HasSubstr("; and for 17.0 GB"), HasSubstr("; and for 1 gpu, ")));
}

TEST(LacksFor, UnknownMemoryIsNoLack) {
  EXPECT_EQ(LacksFor({.mem_bytes = kGb}, Machine{.cores = 1}), "");
  EXPECT_EQ(LacksFor({.cpus = 2, .mem_bytes = kGb}, Machine{.cores = 1}), "2 cpus, this machine has 1");
}

}  // namespace
}  // namespace muster::resources_test
