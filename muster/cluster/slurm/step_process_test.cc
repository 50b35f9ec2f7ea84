#include "muster/cluster/slurm/step_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace muster::step_process_test {
namespace {

// A folder that looks like /proc.
class StepProcessTest : public ::testing::Test {
 protected:
  StepProcessTest() : proc_(absl::StrCat(::testing::TempDir(), "/step_process_", getpid())) {}
  ~StepProcessTest() override { std::filesystem::remove_all(proc_); }

  void Add(int pid, int parent, const std::string& title, int terminal = 0) {
    const std::string folder = absl::StrCat(proc_, "/", pid);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/stat") << pid << " (a) name) S " << parent << " 1 1 " << terminal << " 1 0\n";
    std::ofstream(folder + "/cmdline") << title << '\0';
  }

  const std::string proc_;
};

TEST_F(StepProcessTest, TheNearestSlurmstepdIsTheStep) {
  Add(1, 0, "init");
  Add(10, 1, "slurmstepd: [16.0]");
  Add(20, 10, "slurmstepd: [17.batch]");
  Add(30, 20, "bash");
  Add(40, 30, "train");
  EXPECT_EQ(FindStepProcess(proc_, 40, "30"), (StepProcess{"17.batch", false}));
  EXPECT_EQ(FindStepProcess(proc_, 40, "40"),
            (StepProcess{.stepd = "17.batch", .has_terminal = false, .is_task = true}))
      << "the process itself may be the task";
  EXPECT_EQ(FindStepProcess(proc_, 40, "10"), (StepProcess{"17.batch", std::nullopt})) << "the task of an outer step";
  EXPECT_EQ(FindStepProcess(proc_, 40, ""), (StepProcess{"17.batch", std::nullopt}));
}

TEST_F(StepProcessTest, ATaskWithATerminalIsSeen) {
  Add(10, 1, "slurmstepd: [17.0]   ");
  Add(20, 10, "bash", 34817);
  Add(30, 20, "train");
  EXPECT_EQ(FindStepProcess(proc_, 30, "20"), (StepProcess{"17.0", true}));
}

TEST_F(StepProcessTest, ATaskWhoseStreamsAreAllNullIsMute) {
  Add(10, 1, "slurmstepd: [17.0]");
  Add(20, 10, "bash");
  Add(30, 20, "train");
  std::filesystem::create_directory(proc_ + "/20/fd");
  for (const char* stream : {"0", "1"}) std::filesystem::create_symlink("/dev/null", proc_ + "/20/fd/" + stream);
  std::filesystem::create_symlink("pipe:[7]", proc_ + "/20/fd/2");
  EXPECT_FALSE(FindStepProcess(proc_, 30, "20").is_mute) << "what it says may be read";
  std::filesystem::remove(proc_ + "/20/fd/2");
  EXPECT_FALSE(FindStepProcess(proc_, 30, "20").is_mute) << "one is closed, or belongs to another user";
  std::filesystem::create_symlink("/dev/null", proc_ + "/20/fd/2");
  EXPECT_TRUE(FindStepProcess(proc_, 30, "20").is_mute);
  EXPECT_FALSE(FindStepProcess(proc_, 30, "30").is_mute) << "the task's streams count";
}

TEST_F(StepProcessTest, WhatCannotBeReadIsUnknown) {
  EXPECT_EQ(FindStepProcess(proc_, 30, "30"), StepProcess());
  Add(30, 20, "train");
  EXPECT_EQ(FindStepProcess(proc_, 30, "20"), StepProcess());
  Add(20, 30, "a circle");
  EXPECT_EQ(FindStepProcess(proc_, 30, "7"), StepProcess());
  EXPECT_EQ(FindStepProcess("/proc", getpid(), "").has_terminal, std::nullopt);
}

}  // namespace
}  // namespace muster::step_process_test
