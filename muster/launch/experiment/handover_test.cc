#include "muster/launch/experiment/handover.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "muster/base/testing/scratch_folder.h"

namespace muster::handover_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty, ::testing::Pair;

const TaskId kPs{kPsJob, 0};
const TaskId kWorker{kWorkerJob, 1};
const ExperimentId kRun{.number = 4};

class HandoverTest : public testing::Test {
 protected:
  HandoverTest() { std::filesystem::create_directories(home_.folder(kRun)); }

  const ScratchFolder folder_;
  const Home home_{folder_.path()};
};

TEST_F(HandoverTest, IsReadAsItWasWrittenByItsOwnerAlone) {
  EXPECT_TRUE(absl::IsNotFound(ReadHandover(home_, kRun).status()));
  Handover handover{.job = "job 17 of Slurm",
                    .supervisor = 2,
                    .run_id = "3f",
                    .job_token = "secret",
                    .addresses = {{kPs, {{"10.0.0.1:4000"}, {"10.0.0.2:4001"}}}, {kWorker, {{}}}},
                    .placement = {{kPs, "n1"}},
                    .hosts = {},
                    .lives = {{kPs, 3}}};
  handover.hosts["n1"].work = "/tmp/work";
  handover.hosts["n2"].output = "/tmp/output";
  ASSERT_EQ(WriteHandover(home_, kRun, handover), absl::OkStatus());
  struct stat info = {};
  ASSERT_EQ(stat(home_.handover(kRun).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0U);
  const auto read = ReadHandover(home_, kRun);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->job, handover.job);
  EXPECT_EQ(read->supervisor, 2U);
  EXPECT_EQ(read->run_id, "3f");
  EXPECT_EQ(read->job_token, "secret");
  EXPECT_EQ(read->addresses, handover.addresses);
  EXPECT_EQ(read->placement, handover.placement);
  EXPECT_EQ(read->lives, handover.lives);
  EXPECT_EQ(read->hosts.at("n1").work, "/tmp/work");
  EXPECT_EQ(read->hosts.at("n2").output, "/tmp/output");
}

TEST_F(HandoverTest, WhatMusterHasNotWrittenIsRefused) {
  for (const char* text : {"", "{}", "[]", R"({"job": 3})", "{\"job\""}) {
    std::ofstream(home_.handover(kRun)) << text;
    EXPECT_TRUE(absl::IsDataLoss(ReadHandover(home_, kRun).status())) << text;
  }
}

TEST_F(HandoverTest, TheLoggedOutputIsThatOfTheSameLifeAlone) {
  EXPECT_THAT(ReadLoggedOutput(home_, kRun, {{kPs, 1}}), IsEmpty());
  const LoggedOutput logged = {.out = 17, .err = 4, .end = {.file = 2, .bytes = 300}};
  {
    auto file = LoggedOutputFile::Make(home_, kRun, {{kPs, 1, {.out = 170000, .err = 4, .end = {}}}, {kWorker, 1, {}}});
    ASSERT_TRUE(file.ok()) << file.status();
    file->Note(kPs, 1, logged);
  }
  EXPECT_THAT(ReadLoggedOutput(home_, kRun, {{kPs, 1}, {kWorker, 2}}), ElementsAre(Pair(kPs, logged)));
  RemoveHandover(home_, kRun);
  EXPECT_THAT(ReadLoggedOutput(home_, kRun, {{kPs, 1}}), IsEmpty());
}

}  // namespace
}  // namespace muster::handover_test
