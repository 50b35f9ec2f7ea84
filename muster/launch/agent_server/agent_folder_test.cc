#include "muster/launch/agent_server/agent_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::agent_folder_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

class AgentFolderTest : public ::testing::Test {
 protected:
  AgentFolder Folder(const std::string& job = "job-1") const { return AgentFolder::Open(job, scratch_.path()).value(); }
  std::string Path(const std::string& file) const {
    return absl::StrCat("muster-", geteuid(), "/agents/job-1", file.empty() ? "" : "/", file);
  }

  const ScratchFolder scratch_;
};

TEST_F(AgentFolderTest, AJobIsAPlainWord) {
  for (const auto& job : std::vector<std::string>{"a", "Job-1", std::string(64, 'x')})
    EXPECT_TRUE(CheckAgentJob(job).ok()) << job;
  for (const auto& job : std::vector<std::string>{"", "a/b", "..", "a b", "a\n", std::string(65, 'x')})
    EXPECT_TRUE(absl::IsInvalidArgument(CheckAgentJob(job))) << job;
}

TEST_F(AgentFolderTest, IsMadeForOneUserAndOneAgent) {
  AgentFolder folder = Folder(), other = Folder(), of_another_job = Folder("job-2");
  ASSERT_EQ(folder.Lock(absl::ZeroDuration()), absl::OkStatus());
  struct stat info {};
  ASSERT_EQ(stat(folder.PathOf("").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  const absl::Status locked = other.Lock(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsUnavailable(locked));
  EXPECT_THAT(std::string(locked.message()), AllOf(HasSubstr("job job-1"), HasSubstr(folder.PathOf(""))));
  EXPECT_TRUE(of_another_job.Lock(absl::ZeroDuration()).ok());
  { const AgentFolder ended = std::move(folder); }
  EXPECT_TRUE(other.Lock(absl::ZeroDuration()).ok());
}

TEST_F(AgentFolderTest, ADeadAgentsSocketIsReplaced) {
  EXPECT_TRUE(absl::IsNotFound(Folder().Connect().status()));
  {
    AgentFolder dead = Folder();
    ASSERT_TRUE(dead.Lock(absl::ZeroDuration()).ok());
    ASSERT_TRUE(dead.Listen().ok());
  }
  EXPECT_TRUE(scratch_.Has(Path("socket")));
  EXPECT_TRUE(absl::IsNotFound(Folder().Connect().status()));
  AgentFolder next = Folder();
  ASSERT_TRUE(next.Lock(absl::ZeroDuration()).ok());
  const auto listening = next.Listen();
  ASSERT_EQ(listening.status(), absl::OkStatus());
  EXPECT_TRUE(Folder().Connect().ok());
}

TEST_F(AgentFolderTest, OfAnEndedAgentNothingIsLeftIfNothingIsWanted) {
  AgentFolder folder = Folder();
  ASSERT_TRUE(folder.Lock(absl::ZeroDuration()).ok());
  ASSERT_TRUE(folder.Listen().ok());
  ASSERT_TRUE(folder.OpenLog().ok());
  folder.Remove(/*all=*/false);
  EXPECT_FALSE(scratch_.Has(Path("socket")));
  EXPECT_TRUE(scratch_.Has(Path("log")));
  scratch_.Write(Path("cluster"), "");
  folder.Remove(/*all=*/true);
  EXPECT_FALSE(scratch_.Has(Path("")));
}

TEST_F(AgentFolderTest, TheFolderOfAnEndedAgentCountsForNothing) {
  AgentFolder ended = Folder(), next = Folder();
  ASSERT_TRUE(ended.Lock(absl::ZeroDuration()).ok());
  ended.Remove(/*all=*/true);
  EXPECT_TRUE(next.Lock(absl::ZeroDuration()).ok()) << "it is another folder";
}

TEST_F(AgentFolderTest, SeveralAgentsOfAJobHaveFoldersOfItsName) {
  for (const char* place : {"job", "job-0", "job-12", "jobs", "jobs-0", "a-job"})
    ASSERT_TRUE(Folder(place).OpenLog().ok()) << place;
  EXPECT_THAT(*AgentFolder::PlacesOf("job", scratch_.path()), ElementsAre("job", "job-0", "job-12"));
  EXPECT_THAT(*AgentFolder::PlacesOf("none", scratch_.path()), IsEmpty());
}

TEST_F(AgentFolderTest, OneStartsAtATime) {
  const AgentFolder other = Folder("job-2");
  {
    const AgentFolder folder = Folder();
    ASSERT_TRUE(folder.LockStart(absl::ZeroDuration()).ok());
    EXPECT_TRUE(absl::IsUnavailable(other.LockStart(absl::ZeroDuration())));
  }
  EXPECT_TRUE(other.LockStart(absl::ZeroDuration()).ok());
}

TEST_F(AgentFolderTest, WhatOthersCanChangeIsNotUsed) {
  { AgentFolder folder = Folder(); }
  const std::string agents = scratch_ / absl::StrCat("muster-", geteuid(), "/agents");
  ASSERT_EQ(chmod(agents.c_str(), 0770), 0);
  const absl::Status status = AgentFolder::Open("job-1", scratch_.path()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(agents), HasSubstr("remove it")));
}

}  // namespace
}  // namespace muster::agent_folder_test
