#include "muster/launch/far_home/far_places.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/far_home/far_message.h"

namespace muster::far_places_test {
namespace {

TEST(FarPlacesTest, OnlyTheFilesOfARunMayCome) {
  for (const char* name : {"records", "state.json", "refused", "job_waits", "usage.json", "supervisor.log", "job.out",
                           "logs/worker.1/000001.log", "logs/experiment/live", "logs/my-role.12/1000000.log",
                           "requests/0123456789abcdef.done"})
    EXPECT_TRUE(FarPlaceOf(name).has_value()) << name;
  for (const char* name : {"",
                           "experiment.json",
                           "job",
                           "lock",
                           "job.sh",
                           "../records",
                           "logs/../records",
                           "logs/./000001.log",
                           "logs/worker.1/../000001.log",
                           "/etc/passwd",
                           "logs/worker.1/1.log",
                           "logs/.x/000001.log",
                           "logs//000001.log",
                           "logs/worker.1/000001.log/",
                           "requests/0123456789abcdef.json",
                           "requests/x.done",
                           "logs/a/b/000001.log",
                           "output/model",
                           "far.log",
                           "other_home"})
    EXPECT_FALSE(FarPlaceOf(name).has_value()) << name;
}

TEST(FarPlacesTest, StateIsWrittenAfterRecordsAndRecordsAfterLogs) {
  EXPECT_LT(FarPlaceOf("logs/worker.1/000001.log")->rank, FarPlaceOf("records")->rank);
  EXPECT_LT(FarPlaceOf("records")->rank, FarPlaceOf("state.json")->rank);
}

TEST(FarPlacesTest, APathBelowAFolderLeavesItNowhere) {
  EXPECT_TRUE(IsPathBelow("a/b.c"));
  EXPECT_TRUE(IsPathBelow("..a"));
  for (const std::string& path :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string("../a"),
        std::string("a/.."), std::string("a/./b"), std::string("a\0b", 3)})
    EXPECT_FALSE(IsPathBelow(path)) << path;
}

class OpenBelowTest : public ::testing::Test {
 protected:
  absl::Status Open(const std::string& path, int flags) {
    const auto fd = OpenBelow(scratch_ / "run", path, flags);
    if (fd.ok()) close(*fd);
    return fd.status();
  }
  const ScratchFolder scratch_;
};

TEST_F(OpenBelowTest, MakesFoldersForTheOwnerAlone) {
  scratch_.Write("run/x", "");
  ASSERT_TRUE(Open("logs/worker.1/000001.log", O_WRONLY | O_CREAT).ok());
  struct stat info {};
  ASSERT_EQ(stat((scratch_ / "run/logs").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0U);
  EXPECT_TRUE(absl::IsNotFound(Open("logs/worker.2/000001.log", O_RDONLY)));
}

TEST_F(OpenBelowTest, GoesThroughNoLink) {
  scratch_.Write("other/000001.log", "mine");
  scratch_.Write("run/x", "");
  ASSERT_EQ(symlink("../other", (scratch_ / "run/logs").c_str()), 0);
  ASSERT_EQ(symlink("../other/000001.log", (scratch_ / "run/records").c_str()), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(Open("logs/000001.log", O_WRONLY | O_CREAT)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Open("records", O_WRONLY | O_CREAT)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Open("records", O_RDONLY)));
}

TEST_F(OpenBelowTest, APipeIsNotWaitedFor) {
  scratch_.Write("run/x", "");
  ASSERT_EQ(mkfifo((scratch_ / "run/records").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(Open("records", O_RDONLY)));
}

TEST_F(OpenBelowTest, TheTailIsWhatStandsBeforeAnOffset) {
  scratch_.Write("run/x", std::string(5000, 'a') + "bc");
  EXPECT_EQ(TailBelow(scratch_ / "run", "x", 0).value(), HexSha256(""));
  EXPECT_EQ(TailBelow(scratch_ / "run", "x", 5001).value(), HexSha256(std::string(4095, 'a') + "b"));
  EXPECT_TRUE(absl::IsDataLoss(TailBelow(scratch_ / "run", "x", 6000).status()));
}

}  // namespace
}  // namespace muster::far_places_test
