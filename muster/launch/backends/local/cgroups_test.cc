#include "muster/launch/backends/local/cgroups.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/system/random_hex.h"

namespace muster::cgroups_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

constexpr char kMountInfo[] =
    "23 1 254:0 / / rw - ext4 /dev/root rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n";

TEST(CgroupFolders, AreTheOwnGroupAndThoseAboveIt) {
  EXPECT_THAT(CgroupFolders(kMountInfo, "0::/user.slice/app.slice/a.scope\n"),
              ElementsAre("/sys/fs/cgroup/user.slice/app.slice/a.scope", "/sys/fs/cgroup/user.slice/app.slice",
                          "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"));
  EXPECT_THAT(CgroupFolders(kMountInfo, "0::/\n"), ElementsAre("/sys/fs/cgroup"));
}

TEST(CgroupFolders, BesideVersionOneTheMountIsElsewhere) {
  EXPECT_THAT(CgroupFolders("35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
                            "4:memory:/jobs/1\n0::/jobs\n"),
              ElementsAre("/sys/fs/cgroup/unified/jobs", "/sys/fs/cgroup/unified"));
}

TEST(CgroupFolders, OfAContainerThatSeesAPart) {
  const std::string part = "31 23 0:28 /box/7 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_THAT(CgroupFolders(part, "0::/box/7/a\n"), ElementsAre("/sys/fs/cgroup/a", "/sys/fs/cgroup"));
  EXPECT_THAT(CgroupFolders(part, "0::/box/7\n"), ElementsAre("/sys/fs/cgroup"));
  EXPECT_THAT(CgroupFolders(part, "0::/box/71/a\n"), ElementsAre("/sys/fs/cgroup"));
  EXPECT_THAT(CgroupFolders(kMountInfo, "0::/../..\n"), ElementsAre("/sys/fs/cgroup"));
}

TEST(CgroupFolders, WithoutVersionTwoThereAreNone) {
  EXPECT_THAT(CgroupFolders("35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/\n"),
              IsEmpty());
  EXPECT_THAT(CgroupFolders("", ""), IsEmpty());
  EXPECT_THAT(CgroupFolders("31 23 - cgroup2 cgroup2 rw\n", "0::/\n"), IsEmpty());
}

TEST(CgroupCounter, ReadsTheLineOfThatName) {
  const std::string events = "low 0\nhigh 0\nmax 71\noom 2\noom_kill 5\noom_group_kill 1\n";
  EXPECT_EQ(CgroupCounter(events, "oom"), 2);
  EXPECT_EQ(CgroupCounter(events, "oom_kill"), 5);
  EXPECT_EQ(CgroupCounter(events, "other"), 0);
  EXPECT_EQ(CgroupCounter("oom\noom x\n", "oom"), 0);
}

TEST(CpuMaxText, IsMicrosecondsOfAPeriod) {
  EXPECT_EQ(CpuMaxText(1.5), "150000 100000");
  EXPECT_EQ(CpuMaxText(64), "6400000 100000");
  EXPECT_EQ(CpuMaxText(0.001), "1000 100000");  // the least that the kernel accepts
}

// A folder with the files of /proc/self, and a plain folder in place of the cgroups.
class CgroupsElsewhereTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(PosixFileSystem().CreateDirectory(groups_).ok());
    Write(folder_ + "/mountinfo", "31 23 0:28 / " + groups_ + " rw - cgroup2 cgroup2 rw\n");
    Write(folder_ + "/cgroup", "0::/\n");
  }
  static void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  std::string WhyNot() {
    const auto opened = Cgroups::Open("abc", folder_);
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kUnavailable);
    return std::string(opened.status().message());
  }

  const ScratchFolder scratch_;
  const std::string folder_ = scratch_.path();
  const std::string groups_ = folder_ + "/groups";
};

TEST_F(CgroupsElsewhereTest, WithoutTheMemoryControllerItSaysSo) {
  Write(groups_ + "/cgroup.controllers", "cpuset cpu io pids\n");
  EXPECT_THAT(WhyNot(), HasSubstr(groups_ + " has no memory controller"));
}

TEST_F(CgroupsElsewhereTest, WhatCannotBeChangedIsNamed) {
  Write(groups_ + "/cgroup.controllers", "cpu memory\n");
  EXPECT_THAT(WhyNot(), HasSubstr(groups_ + "/cgroup.subtree_control"));
}

TEST_F(CgroupsElsewhereTest, NothingIsLeftOfAPlaceThatDoesNotWork) {
  Write(groups_ + "/cgroup.controllers", "cpu memory\n");
  Write(groups_ + "/cgroup.subtree_control", "cpu memory\n");
  EXPECT_THAT(WhyNot(), HasSubstr("muster-abc has no memory controller"));
  EXPECT_FALSE(PosixFileSystem().Exists(groups_ + "/muster-abc"));
}

TEST_F(CgroupsElsewhereTest, LeftoversOfDeadLaunchersAreRemovedAndNothingElse) {
  Write(groups_ + "/cgroup.controllers", "memory\n");
  Write(groups_ + "/cgroup.subtree_control", "memory\n");
  for (const char* name : {"/muster-0123/worker:1", "/muster-0123/ps:0", "/muster-monitor.service", "/other"}) {
    ASSERT_TRUE(PosixFileSystem().CreateDirectory(groups_ + name).ok());
  }
  WhyNot();
  EXPECT_FALSE(PosixFileSystem().Exists(groups_ + "/muster-0123"));
  EXPECT_TRUE(PosixFileSystem().Exists(groups_ + "/muster-monitor.service"));
  EXPECT_TRUE(PosixFileSystem().Exists(groups_ + "/other"));
}

TEST_F(CgroupsElsewhereTest, WithoutVersionTwoItSaysSo) {
  Write(folder_ + "/mountinfo", "");
  EXPECT_EQ(WhyNot(), "there is no cgroup v2 here");
}

// Uses the machine's own groups, if this process may.
class CgroupsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Cgroups::Open(run_id_);
    if (!opened.ok()) GTEST_SKIP() << "no control groups for this process: " << opened.status().message();
    groups_ = *std::move(opened);
  }
  void TearDown() override {
    if (groups_ == nullptr) return;
    groups_->Remove();
    EXPECT_NE(access(groups_->Folder("").c_str(), F_OK), 0);
  }
  // Returns how a process ends that enters the group of "task" and then does `work`.
  int StatusOf(const ProcessLimits& limits, void (*work)()) {
    const auto procs = groups_->Enter("task", limits).value();
    const pid_t pid = fork();
    if (pid == 0) {
      if (write(procs, "0", 1) == 1) work();
      _exit(99);
    }
    close(procs);
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return status;
  }
  static void TouchMemory() {
    const std::vector<char> bytes(256 << 20, 1);
    _exit(bytes.back() == 1 ? 0 : 1);
  }

  const std::string run_id_ = RandomHex(8);
  std::unique_ptr<Cgroups> groups_;
};

TEST_F(CgroupsTest, WhoUsesMoreThanItsMemoryIsKilledAndItIsKnown) {
  const int status = StatusOf({.mem_bytes = 32 << 20}, TouchMemory);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_TRUE(groups_->WasOverMemory("task"));
}

TEST_F(CgroupsTest, ALaterLifeBeginsAnew) {
  StatusOf({.mem_bytes = 32 << 20}, TouchMemory);
  const int status = StatusOf({}, TouchMemory);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE(groups_->WasOverMemory("task"));
}

TEST_F(CgroupsTest, WhatIsStillInAGroupIsKilledWithIt) {
  const auto procs = groups_->Enter("task", {}).value();
  const pid_t pid = fork();
  if (pid == 0) {
    if (write(procs, "0", 1) == 1) raise(SIGSTOP);
    _exit(1);
  }
  close(procs);
  siginfo_t stopped;
  ASSERT_EQ(waitid(P_PID, pid, &stopped, WSTOPPED | WNOWAIT), 0);
  groups_->Remove();
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST_F(CgroupsTest, AnotherLauncherLeavesTheGroupsOfALivingOneAlone) {
  const auto procs = groups_->Enter("task", {}).value();
  close(procs);
  auto other = Cgroups::Open(RandomHex(8)).value();
  other->Remove();
  EXPECT_EQ(access(groups_->Folder("task").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace muster::cgroups_test
