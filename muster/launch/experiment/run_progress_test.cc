#include "muster/launch/experiment/run_progress.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::run_progress_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty, ::testing::SizeIs;

const TaskId kMaster{kMasterJob, 0};
const TaskId kWorker{kWorkerJob, 0};

class RunProgressTest : public testing::Test {
 protected:
  // Returns "RUNNING: master RUNNING, worker.1 STARTING" for each write since the last call.
  std::vector<std::string> Written() { return std::exchange(written_, {}); }

  const ScratchFolder folder_;
  SimulatedClock clock_;
  TaskLogs logs_{{.folder = folder_.path()}, clock_};
  absl::Status answer_;  // the registry's
  int tries_ = 0;
  std::vector<std::string> written_;
  RunProgress progress_{
      {.id = {.number = 4}}, logs_, clock_, [this](const RunRecord& run, const std::vector<TaskRecord>& tasks) {
        ++tries_;
        if (!answer_.ok()) return answer_;
        std::string line = absl::StrCat(std::string(Name(run.state)), ":");
        for (const TaskRecord& task : tasks)
          absl::StrAppend(&line, " ", LabelOf(task.task), " ", std::string(Name(task.state)));
        written_.push_back(line);
        return absl::OkStatus();
      }};
};

TEST_F(RunProgressTest, WhatIsSetIsWrittenTogether) {
  progress_.Add(kMaster);
  progress_.Add(kWorker);
  EXPECT_THAT(Written(), IsEmpty());
  progress_.SetRun(RunState::kPending);
  progress_.SetTask(kMaster, RunState::kPending);
  progress_.Commit();
  EXPECT_THAT(Written(), ElementsAre("PENDING: master PENDING worker.1 CREATED"));
  EXPECT_TRUE(progress_.written());
  EXPECT_EQ(progress_.deadline(), absl::InfiniteFuture());
}

// As that of a run whose job was begun anew: "it goes on, as the time of its job was over".
TEST_F(RunProgressTest, TheReasonOfAnEndBeforeIsNoneOfARunThatGoesOn) {
  progress_.run().reason = "of before";
  progress_.SetRun(RunState::kCreated);
  EXPECT_EQ(progress_.run().reason, "of before") << "nothing has happened since";
  progress_.SetRun(RunState::kPending);
  EXPECT_EQ(progress_.run().reason, "");
  progress_.run().reason = "worker.1 exited with 1";
  progress_.SetRun(RunState::kFailed);
  EXPECT_EQ(progress_.run().reason, "worker.1 exited with 1");
}

TEST_F(RunProgressTest, OnlyTasksThatHaveChangedAreWrittenAgain) {
  progress_.Add(kMaster);
  progress_.Add(kWorker);
  progress_.Commit();
  progress_.SetTask(kWorker, RunState::kPending);
  progress_.Commit();
  progress_.task(kMaster).pid = 77;
  progress_.Commit();
  progress_.Commit();
  EXPECT_THAT(Written(), ElementsAre("CREATED: master CREATED worker.1 CREATED", "CREATED: worker.1 PENDING",
                                     "CREATED: master CREATED", "CREATED:"));
}

TEST_F(RunProgressTest, WhatHasNotBeenWrittenHasStillChanged) {
  progress_.Add(kMaster);
  progress_.Commit();
  Written();
  answer_ = absl::InvalidArgumentError("may not follow");
  progress_.SetTask(kMaster, RunState::kPending);
  progress_.Commit();
  answer_ = absl::OkStatus();
  progress_.Commit();
  EXPECT_THAT(Written(), ElementsAre("CREATED: master PENDING"));
}

TEST_F(RunProgressTest, OpenTasksAreThoseThatHaveNotEnded) {
  progress_.Add(kMaster);
  progress_.Add(kWorker);
  EXPECT_THAT(progress_.OpenTasks(), ElementsAre(kMaster, kWorker));
  progress_.SetTask(kMaster, RunState::kFailed);
  EXPECT_THAT(progress_.OpenTasks(), ElementsAre(kWorker));
}

TEST_F(RunProgressTest, WhatCannotBeWrittenIsTriedAgainInOrder) {
  answer_ = absl::UnavailableError("disk full");
  progress_.SetRun(RunState::kPending);
  progress_.Commit();
  progress_.SetRun(RunState::kStarting);
  progress_.Commit();
  EXPECT_EQ(tries_, 1) << "another try so soon would only hold the tasks up";
  EXPECT_FALSE(progress_.written());
  EXPECT_EQ(progress_.deadline(), clock_.Now() + absl::Seconds(1));
  progress_.OnTime();
  EXPECT_EQ(tries_, 1);
  clock_.AdvanceTo(progress_.deadline());
  progress_.OnTime();
  EXPECT_EQ(tries_, 2);
  EXPECT_EQ(progress_.deadline(), clock_.Now() + absl::Seconds(2)) << "and later each time";
  answer_ = absl::OkStatus();
  clock_.AdvanceTo(progress_.deadline());
  progress_.OnTime();
  EXPECT_THAT(Written(), ElementsAre("PENDING:", "STARTING:"));
  EXPECT_TRUE(progress_.written());
  EXPECT_EQ(progress_.deadline(), absl::InfiniteFuture());
}

TEST_F(RunProgressTest, ARefusalHoldsNothingUp) {
  answer_ = absl::InvalidArgumentError("FINISHED may not follow");
  progress_.SetRun(RunState::kPending);
  progress_.Commit();
  EXPECT_TRUE(progress_.written());
  EXPECT_EQ(progress_.deadline(), absl::InfiniteFuture());
  answer_ = absl::OkStatus();
  progress_.SetRun(RunState::kFailed);
  progress_.Commit();
  EXPECT_THAT(Written(), ElementsAre("FAILED:"));
}

TEST_F(RunProgressTest, RestartsWhileNothingCanBeWrittenFillNoMemory) {
  progress_.Add(kMaster);
  for (const RunState state : {RunState::kPending, RunState::kStarting, RunState::kRunning}) {
    progress_.SetTask(kMaster, state);
    progress_.Commit();
  }
  Written();
  answer_ = absl::UnavailableError("disk full");
  for (int i = 0; i < 1000; ++i) {
    progress_.SetTask(kMaster, RunState::kStarting);
    progress_.Commit();
    progress_.SetTask(kMaster, RunState::kRunning);
    progress_.Commit();
  }
  answer_ = absl::OkStatus();
  clock_.AdvanceTo(progress_.deadline());
  progress_.OnTime();
  const std::vector<std::string> written = Written();
  EXPECT_THAT(written, SizeIs(testing::Le(3u)));
  EXPECT_EQ(written.back(), "CREATED: master RUNNING");
}

}  // namespace
}  // namespace muster::run_progress_test
