#include "muster/launch/agent_server/usage_report.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::usage_report_test {
namespace {

using ::testing::IsEmpty, ::testing::SizeIs;

constexpr absl::Duration kHang = absl::Seconds(60);
constexpr CommandId kOne = {1, 1};

class UsageReportTest : public ::testing::Test {
 protected:
  // Puts a script in place of nvidia-smi.
  void WriteGpuProgram(const std::string& text) {
    scratch_.Write("nvidia-smi", absl::StrCat("#!/bin/sh\n", text, "\n"));
    std::filesystem::permissions(scratch_ / "nvidia-smi", std::filesystem::perms::owner_all);
  }

  // Returns the use of this process as that of a launch with these devices.
  LaunchUsage Of(const std::string& devices) {
    const UsageEntry usage = report_.Read({{.launch = kOne, .pid = getpid(), .devices = devices}});
    EXPECT_THAT(usage.launches, SizeIs(1));
    return usage.launches.empty() ? LaunchUsage() : usage.launches[0];
  }

  // Reads until there is an answer of the program.
  LaunchUsage OfOnceThereAreGpus(const std::string& devices) {
    const absl::Time give_up = BootClock().Now() + kHang;
    LaunchUsage usage = Of(devices);
    while (usage.gpus == 0 && BootClock().Now() < give_up) {
      loop_.RunOnce(give_up);
      usage = Of(devices);
    }
    return usage;
  }

  const ScratchFolder scratch_;
  FdLoop loop_{BootClock()};
  SimulatedClock clock_;
  UsageReport report_{{absl::StrCat("PATH=", scratch_.path(), ":/usr/bin:/bin")}, loop_, clock_};
};

TEST_F(UsageReportTest, OfATaskWithoutGpusIsItsTimeAndMemory) {
  WriteGpuProgram(absl::StrCat("echo >", scratch_ / "asked"));
  const LaunchUsage usage = Of("");
  EXPECT_EQ(usage.launch, kOne);
  EXPECT_GT(usage.resident_bytes, 0);
  EXPECT_EQ(usage.InUse(), GpusInUse());
  EXPECT_THAT(report_.Read({{.launch = kOne, .pid = 1 << 30, .devices = ""}}).launches, IsEmpty()) << "gone";
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "asked"));
}

TEST_F(UsageReportTest, HasTheGpusOfATaskOnceTheProgramHasAnswered) {
  WriteGpuProgram("echo '0, GPU-0a, 50, 100, 1000'; echo '1, GPU-1b, 20, 10, 1000'; echo '2, GPU-2c, 25, 5, 1000'");
  EXPECT_EQ(Of("1,GPU-2c").InUse(), GpusInUse()) << "nobody waits for it";
  const GpusInUse both = {
      .count = 2, .percent = 22.5, .mem_bytes = int64_t{15} << 20, .mem_total = int64_t{2000} << 20};
  EXPECT_EQ(OfOnceThereAreGpus("1,GPU-2c").InUse(), both);
  EXPECT_EQ(Of("7").InUse(), GpusInUse());
}

TEST_F(UsageReportTest, AsksAgainAfterAWhile) {
  WriteGpuProgram("echo '0, GPU-0a, 50, 100, 1000'");
  EXPECT_EQ(OfOnceThereAreGpus("0").gpu_permille, 500);
  WriteGpuProgram("echo '0, GPU-0a, 75, 100, 1000'");
  EXPECT_EQ(Of("0").gpu_permille, 500);
  clock_.Advance(UsageReport::kGpusEvery);
  const absl::Time give_up = BootClock().Now() + kHang;
  while (Of("0").gpu_permille == 500 && BootClock().Now() < give_up) loop_.RunOnce(give_up);
  EXPECT_EQ(Of("0").gpu_permille, 750);
}

TEST_F(UsageReportTest, AProgramThatHangsIsKilledAndItsGpusAreUnknown) {
  WriteGpuProgram("echo '0, GPU-0a, 50, 100, 1000'");
  EXPECT_EQ(OfOnceThereAreGpus("0").gpus, 1);
  WriteGpuProgram("exec tail -f /dev/null");
  clock_.Advance(UsageReport::kGpusEvery);
  EXPECT_EQ(Of("0").gpus, 1) << "the last answer";
  clock_.Advance(UsageReport::kGpusWithin);
  EXPECT_EQ(Of("0").gpus, 0);
}

}  // namespace
}  // namespace muster::usage_report_test
