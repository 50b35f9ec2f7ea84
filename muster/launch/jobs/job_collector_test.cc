#include "muster/launch/jobs/job_collector.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/launch/far_home/far_message.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/jobs/leave_far.h"
#include "muster/launch/jobs/submit_job.h"
#include "muster/launch/testing/far_homes.h"

namespace muster::job_collector_test {
namespace {

using ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Pair,
    ::testing::SizeIs, ::testing::StartsWith;

class JobCollectorTest : public FarHomesFixture {
 protected:
  JobCollectorTest() {
    EXPECT_TRUE(MarkFar(home_, id_).ok());
    watch_.LeaveFetching();
  }
  absl::StatusOr<bool> Step() { return collector_->Step(); }
  // As if the collector had been killed, and another started.
  void Restart() { collector_ = std::make_unique<JobCollector>(means_, id_); }
  std::string Collected() const { return FarText("collected"); }

  const ExperimentId id_ = Submit();
  JobWatch watch_{home_, *near_,
                  [this](const std::string& name, const std::string&) -> std::unique_ptr<JobEngine> {
                    return name == "slurm" ? std::make_unique<PlayedJobEngine>(played_) : nullptr;
                  },
                  clock_};
  std::vector<std::string> said_;
  const JobCollector::Means means_ = {
      .home = home_, .registry = *near_, .jobs = watch_, .clock = clock_, .say = [this](const std::string& line) {
        said_.push_back(line);
      }};
  std::unique_ptr<JobCollector> collector_ = std::make_unique<JobCollector>(means_, id_);
};

TEST_F(JobCollectorTest, SendsFetchesAndLetsTheJobGo) {
  EXPECT_EQ(Step().value(), false);
  EXPECT_EQ(Get(Far(), id_).state, RunState::kCreated) << "the job has it";
  BringFar(id_, RunState::kRunning);
  LogFar(id_, "worker.1", "one");
  EXPECT_EQ(Step().value(), false);
  EXPECT_EQ(Get(*near_, id_).state, RunState::kRunning);
  BringFar(id_, RunState::kFinished);
  far_scratch_.Write("experiments/1/output/model", std::string(2 << 20, 'm'));
  EXPECT_EQ(Step().value(), false) << "its supervisor still lives";
  EXPECT_THAT(played_.ended, IsEmpty());
  EndFar(id_);
  EXPECT_EQ(Step().value(), true);
  EXPECT_EQ(Collected(), kJob);
  EXPECT_THAT(played_.ended, ElementsAre(Pair(kJob, JobEnd::kCancel)));
  EXPECT_FALSE(IsFar(home_, id_));
  EXPECT_EQ(Get(*near_, id_).state, RunState::kFinished);
  EXPECT_EQ(Near("output/model").size(), size_t{2} << 20);
  EXPECT_THAT(Near("logs/worker.1/000001.log"), HasSubstr("o one\n"));
  EXPECT_FALSE(scratch_.Has("open/1"));
}

TEST_F(JobCollectorTest, AJobThatWaitsIsSentTheExperimentOnceItRuns) {
  silence_ = absl::UnavailableError("the pod doesn't run yet");
  played_.news[kJob] = {.phase = JobPhase::kWaits, .text = "Pending"};
  EXPECT_EQ(Step().status(), silence_);
  EXPECT_EQ(Get(*near_, id_).state, RunState::kCreated);
  silence_ = absl::OkStatus();
  played_.news[kJob] = {.phase = JobPhase::kRuns};
  EXPECT_TRUE(Step().ok());
  EXPECT_EQ(Get(Far(), id_).state, RunState::kCreated);
}

TEST_F(JobCollectorTest, AfterAKillAnotherGoesOn) {
  ASSERT_TRUE(Step().ok());
  Restart();
  BringFar(id_, RunState::kFinished);
  LogFar(id_, "worker.1", "one");
  EndFar(id_);
  verbs_.clear();
  // Killed after everything was fetched, before the engine was told.
  played_.silence = absl::UnavailableError("no answer");
  EXPECT_FALSE(Step().ok());
  EXPECT_TRUE(IsFar(home_, id_));
  EXPECT_EQ(std::count(verbs_.begin(), verbs_.end(), "receive"), 0) << "it isn't sent again";
  played_.silence = absl::OkStatus();
  Restart();
  EXPECT_EQ(Step().value(), true);
  EXPECT_FALSE(IsFar(home_, id_));
  EXPECT_THAT(Near("logs/worker.1/000001.log"), HasSubstr("o one\n"));
}

TEST_F(JobCollectorTest, WhatIsWrongIsSaidOnce) {
  scratch_.Write("experiments/1/job.out", "of an earlier job\n");
  ASSERT_TRUE(Step().ok());
  far_scratch_.Write("experiments/1/job.out", "another text of this job\n");
  ASSERT_TRUE(Step().ok());
  ASSERT_TRUE(Step().ok());
  EXPECT_THAT(said_, ElementsAre(HasSubstr("job.out isn't what it was")));
}

TEST_F(JobCollectorTest, AnErrorOfWhichOnlyNumbersChangeIsSaidOnce) {
  int port = 50000;
  const auto fail = [&] { silence_ = absl::UnavailableError(absl::StrCat("read tcp 10.0.0.1:", ++port, ": reset")); };
  fail();
  collector_->Run([&](absl::Duration) {
    fail();
    if (port == 50005) UnmarkFar(home_, id_);
  });
  EXPECT_THAT(said_, ElementsAre("read tcp 10.0.0.1:50001: reset"));
}

TEST_F(JobCollectorTest, AJobThatSaysMuchFillsNoDisk) {
  ASSERT_TRUE(Step().ok());
  nlohmann::json differs = nlohmann::json::array();
  for (int i = 0; i < 300; ++i) differs.push_back(absl::StrCat("logs/worker.", i, "/000001.log"));
  hostile_ = FarMessageText({.head = {{"home", far_.path()},
                                      {"parts", nlohmann::json::array()},
                                      {"differs", differs},
                                      {"more", false},
                                      {"over", false}}});
  ASSERT_TRUE(Step().ok());
  ASSERT_TRUE(Step().ok());
  EXPECT_THAT(said_, SizeIs(101));
  EXPECT_THAT(said_.back(), HasSubstr("isn't said any more"));
}

TEST_F(JobCollectorTest, WhatAnErrorSaysIsOneShortLine) {
  silence_ = absl::UnavailableError("a\n\x1b[2J" + std::string(5000, 'x'));
  collector_->Run([&](absl::Duration) { UnmarkFar(home_, id_); });
  EXPECT_THAT(said_, ElementsAre(StartsWith("a\\x0a\\x1b[2Jx")));
  EXPECT_LE(said_.at(0).size(), 1010U);
}

TEST_F(JobCollectorTest, OneCollectorAtATime) {
  const RunLock lock = RunLock::Take(FarFile(home_, id_, kFarCollectorName)).value();
  // Would fail to start a program that isn't there; it isn't tried.
  StartCollectors(home_, {.muster_command = "/no/such/muster"});
  EXPECT_FALSE(scratch_.Has("experiments/1/far.log"));
}

TEST_F(JobCollectorTest, AJobThatIsGoneEndsTheRunWithWhatWasFetched) {
  ASSERT_TRUE(Step().ok());
  BringFar(id_, RunState::kRunning);
  LogFar(id_, "worker.1", "one");
  ASSERT_TRUE(Step().ok());
  silence_ = absl::NotFoundError("no such pod");
  played_.news[kJob] = {.phase = JobPhase::kEnded, .text = "Evicted"};
  EXPECT_EQ(Step().value(), true);
  EXPECT_EQ(Get(*near_, id_).state, RunState::kFailed);
  EXPECT_THAT(Get(*near_, id_).reason, HasSubstr("its job muster-1 of Slurm has ended: Evicted"));
  EXPECT_THAT(Near("logs/worker.1/000001.log"), HasSubstr("o one\n"));
  EXPECT_FALSE(IsFar(home_, id_));
}

TEST_F(JobCollectorTest, ASupervisorThatEndsWithoutAWordIsNotAKill) {
  ASSERT_TRUE(Step().ok());
  BringFar(id_, RunState::kRunning);
  far_scratch_.Write("experiments/1/lingers", kJob);
  EXPECT_EQ(Step().value(), false);
  EXPECT_EQ(Collected(), kJob) << "nothing more will come";
  EXPECT_THAT(played_.ended, IsEmpty()) << "the job ends by itself";
  played_.news[kJob] = {.phase = JobPhase::kEnded, .text = "Completed"};
  EXPECT_EQ(Step().value(), true);
  EXPECT_EQ(Get(*near_, id_).state, RunState::kFailed);
  EXPECT_THAT(played_.ended, ElementsAre(Pair(kJob, JobEnd::kCancel)));
}

TEST_F(JobCollectorTest, ARunThatGoesOnInAnotherJobIsSentThere) {
  played_.terms.max_requeues = 1;
  ASSERT_TRUE(Step().ok());
  JobOfRun job = **ReadJobFile(far_.job(id_));
  job.wants_another = true;
  ASSERT_TRUE(WriteJobFile(far_.job(id_), job).ok());
  EndFar(id_);
  EXPECT_EQ(Step().value(), false);
  EXPECT_EQ(Collected(), kJob);
  played_.news[kJob] = {.phase = JobPhase::kEnded, .text = "Completed"};
  EXPECT_EQ(Step().value(), false);
  EXPECT_EQ(ReadJobFile(home_.job(id_)).value()->id, "101");
  EXPECT_EQ(Get(*near_, id_).state, RunState::kCreated);
  EXPECT_TRUE(IsFar(home_, id_));
}

// The supervisor's pod runs, and has the experiment, but another pod never starts.
TEST_F(JobCollectorTest, AJobWithAPartOfItsHostsIsGivenBackAndTheNextOneIsSentTheExperiment) {
  scratch_.Write("experiments/1/job.sh", "script\n");
  ASSERT_TRUE(Step().ok());
  BringFar(id_, RunState::kPending);
  far_scratch_.Write("experiments/1/job.out", "of this job\n");
  played_.news[kJob] = {.phase = JobPhase::kWaits, .text = "2 of 3", .late = "not all started"};
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Step().value(), false);
  EXPECT_THAT(played_.ended, ElementsAre(Pair(kJob, JobEnd::kGiveBack)));
  EXPECT_EQ(Get(*near_, id_).state, RunState::kCreated);
  EXPECT_FALSE(scratch_.Has("experiments/1/job.out")) << "the next job's output couldn't follow it";
  // What its supervisor says of its end counts for nothing.
  BringFar(id_, RunState::kFailed);
  EndFar(id_);
  const int asked = asked_;
  EXPECT_TRUE(absl::IsUnavailable(RefreshFar(home_, *near_, engine_, clock_, id_, {.id = kJob}).status()));
  EXPECT_EQ(Step().value(), false);
  EXPECT_EQ(asked_, asked);
  EXPECT_EQ(Get(*near_, id_).state, RunState::kCreated);
  EXPECT_THAT(played_.submitted, IsEmpty());
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Step().value(), false);
  EXPECT_THAT(played_.submitted, SizeIs(1));
  EXPECT_FALSE(HasComeInto(home_, id_, ReadJobFile(home_.job(id_)).value()->id));
  EXPECT_TRUE(IsFar(home_, id_));
}

TEST_F(JobCollectorTest, AJobThatWasGivenBackIsFollowedSoonHoweverLongItWasSilent) {
  scratch_.Write("experiments/1/job.sh", "script\n");
  silence_ = absl::UnavailableError("the pod doesn't run");
  played_.news[kJob] = {.phase = JobPhase::kWaits, .text = "2 of 3"};
  std::vector<absl::Duration> pauses;
  collector_->Run([&](absl::Duration pause) {
    pauses.push_back(pause);
    clock_.Advance(pause);
    if (!played_.ended.empty()) UnmarkFar(home_, id_);
    if (pauses.size() == 10) played_.news[kJob].late = "not all started";
  });
  ASSERT_THAT(pauses, SizeIs(11));
  EXPECT_EQ(pauses[9], absl::Seconds(30));
  EXPECT_EQ(pauses[10], absl::Milliseconds(250));
}

TEST_F(JobCollectorTest, AKillWhileItHasNoJobIsTheEnd) {
  JobOfRun job = **ReadJobFile(home_.job(id_));
  job.again_at = 2e9;
  job.killed = true;
  ASSERT_TRUE(WriteJobFile(home_.job(id_), job).ok());
  EXPECT_EQ(Step().value(), true);
  EXPECT_EQ(Get(*near_, id_).state, RunState::kKilled);
  EXPECT_FALSE(IsFar(home_, id_));
}

TEST_F(JobCollectorTest, AnAttemptThatHasBegunMeanwhileKeepsItsMark) {
  ASSERT_TRUE(Step().ok());
  BringFar(id_, RunState::kFinished);
  EndFar(id_);
  const auto answer = played_.ask;
  played_.ask = [&](const std::string& id, const std::vector<std::string>& arguments, const std::string& input) {
    const auto text = answer(id, arguments, input);
    if (Collected() == kJob) {
      EXPECT_TRUE(WriteJobFile(home_.job(id_), {.engine = "slurm", .id = "muster-2", .host = "h"}).ok());
    }
    return text;
  };
  EXPECT_EQ(Step().value(), false);
  EXPECT_TRUE(IsFar(home_, id_));
}

TEST_F(JobCollectorTest, AnExperimentThatWasForgottenNeedsNone) {
  ASSERT_TRUE(near_->EndLost(id_, {}).ok());
  ASSERT_TRUE(near_->Forget(1).ok());
  EXPECT_EQ(Step().value(), true);
  EXPECT_FALSE(IsFar(home_, id_));
}

TEST_F(JobCollectorTest, AnEngineThatIsGoneForGoodIsGivenUp) {
  ASSERT_TRUE(near_->EndLost(id_, {.state = RunState::kKilled, .reason = "it was killed"}).ok());
  silence_ = played_.silence = absl::UnavailableError("no route to host");
  EXPECT_FALSE(Step().ok());
  clock_.Advance(absl::Hours(25));
  Restart();
  EXPECT_FALSE(Step().ok()) << "it may come back in a moment";
  clock_.Advance(absl::Minutes(11));
  EXPECT_EQ(Step().value(), true);
  EXPECT_FALSE(IsFar(home_, id_));
}

// Nobody knows whether the run has ended: the context may be gone for ever, or for a night.
TEST_F(JobCollectorTest, AfterAnHourWithoutAnAnswerTheNextCommandAsksAgain) {
  silence_ = played_.silence = absl::UnavailableError("no route to host");
  absl::Duration waited;
  collector_->Run([&](absl::Duration pause) {
    if (waited == absl::ZeroDuration()) clock_.Advance(absl::Hours(72));  // suspended
    waited += pause;
    clock_.Advance(pause);
    if (waited > absl::Hours(2)) UnmarkFar(home_, id_);
  });
  EXPECT_GT(waited, absl::Minutes(59));
  EXPECT_LE(waited, absl::Hours(1));
  EXPECT_EQ(said_.back(), "nothing was heard of its job for 1h; the next command asks again");
  EXPECT_TRUE(IsFar(home_, id_));
  // An answer begins the hour anew.
  Restart();
  waited = absl::ZeroDuration();
  collector_->Run([&](absl::Duration pause) {
    waited += pause;
    clock_.Advance(pause);
    const bool answers = waited > absl::Minutes(50) && waited < absl::Minutes(52);
    silence_ = played_.silence = answers ? absl::OkStatus() : absl::UnavailableError("no route to host");
    if (waited > absl::Hours(3)) UnmarkFar(home_, id_);
  });
  EXPECT_GT(waited, absl::Minutes(100));
  EXPECT_LT(waited, absl::Hours(2));
}

TEST_F(JobCollectorTest, AJobThatWasNeverWrittenDownIsEndedOnceItsCommandIsKilled) {
  ASSERT_EQ(unlink(home_.job(id_).c_str()), 0);
  ASSERT_TRUE(MarkFar(home_, id_, {.engine = "slurm", .id = "muster-9", .host = "h"}).ok());
  std::optional<RunLock> command = TakeLock(id_);
  EXPECT_EQ(Step().value(), false) << "it may be about to be written";
  EXPECT_THAT(played_.ended, IsEmpty());
  command.reset();
  played_.silence = absl::UnavailableError("no answer");
  EXPECT_EQ(Step().status(), played_.silence);
  EXPECT_EQ(Get(*near_, id_).state, RunState::kFailed);
  EXPECT_THAT(Get(*near_, id_).reason, HasSubstr("`muster train` was killed"));
  EXPECT_TRUE(IsFar(home_, id_));
  played_.silence = absl::OkStatus();
  EXPECT_EQ(Step().value(), true);
  EXPECT_THAT(played_.ended, Contains(Pair("muster-9", JobEnd::kCancel)));
  EXPECT_FALSE(IsFar(home_, id_));
}

TEST_F(JobCollectorTest, AJobThatMayHaveBeenMadeIsLookedForMoreAndMoreSeldomUntilTheEngineAnswers) {
  ASSERT_EQ(unlink(home_.job(id_).c_str()), 0);
  ASSERT_TRUE(MarkFar(home_, id_, {.engine = "slurm", .id = "muster-9", .host = "h"}).ok());
  ASSERT_TRUE(near_->EndLost(id_, {.reason = "Slurm doesn't answer", .exit_code = 1}).ok());
  played_.silence = absl::UnavailableError("no answer");
  std::vector<absl::Duration> pauses;
  collector_->Run([&](absl::Duration pause) {
    pauses.push_back(pause);
    clock_.Advance(pause);
    if (pauses.size() == 12) played_.silence = absl::OkStatus();
    if (pauses.size() > 20) UnmarkFar(home_, id_);
  });
  ASSERT_THAT(pauses, SizeIs(12));
  for (size_t i = 1; i < pauses.size(); ++i) EXPECT_EQ(pauses[i], std::min(pauses[i - 1] * 2, absl::Seconds(30)));
  EXPECT_THAT(played_.ended, SizeIs(13));
  EXPECT_FALSE(IsFar(home_, id_));
  EXPECT_EQ(Get(*near_, id_).reason, "Slurm doesn't answer");
}

TEST_F(JobCollectorTest, WhileTheJobIsSubmittedItLooksOften) {
  const std::string written = Near("job");
  ASSERT_EQ(unlink(home_.job(id_).c_str()), 0);
  const RunLock command = TakeLock(id_);
  std::vector<absl::Duration> pauses;
  collector_->Run([&](absl::Duration pause) {
    pauses.push_back(pause);
    if (pauses.size() == 3) scratch_.Write("experiments/1/job", written);
    if (pauses.size() == 4) UnmarkFar(home_, id_);
  });
  EXPECT_THAT(pauses, ::testing::Each(absl::Milliseconds(250)));
  EXPECT_EQ(Get(Far(), id_).state, RunState::kCreated) << "the job has it";
}

TEST_F(JobCollectorTest, AnotherAttemptIsRefusedWhileTheOutputOfTheLastOneIsFetched) {
  ASSERT_TRUE(Step().ok());
  BringFar(id_, RunState::kFinished);
  ASSERT_TRUE(Step().ok());
  absl::Duration waited;
  const absl::Status refused = LeaveFar(home_, watch_, id_, clock_, [&](absl::Duration pause) {
    waited += pause;
    clock_.Advance(pause);
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("still being fetched from its job muster-1"));
  EXPECT_GE(waited, kLeavePatienceOfFar);
  EXPECT_THAT(played_.ended, IsEmpty()) << "the job has what the next attempt wants";
  EXPECT_TRUE(IsFar(home_, id_));
  // The collector comes to its end meanwhile.
  EXPECT_EQ(LeaveFar(home_, watch_, id_, clock_,
                     [this](absl::Duration) {
                       EndFar(id_);
                       EXPECT_EQ(Step().value(), true);
                     }),
            absl::OkStatus());
}

TEST_F(JobCollectorTest, AJobThatNeverGotTheExperimentHoldsNoAttemptUp) {
  const auto pause = [this](absl::Duration time) { clock_.Advance(time); };
  EXPECT_EQ(LeaveFar(home_, watch_, id_, clock_, pause), absl::OkStatus());
  EXPECT_THAT(played_.ended, ElementsAre(Pair(kJob, JobEnd::kCancel)));
  EXPECT_FALSE(IsFar(home_, id_));
}

TEST_F(JobCollectorTest, AnotherAttemptThatWouldNotFindTheOutputIsRefused) {
  const auto check = [&](JobEngine* engine, const std::string& output = "") {
    NewExperiment next = Single();
    next.file_text = absl::StrCat("project: toaster\ntrain: {framework: any, ", output, "run: x}\n");
    return CheckOutputIsFound(home_, *near_, Get(*near_, id_), next, engine);
  };
  EXPECT_EQ(check(&engine_), absl::OkStatus()) << "it has written nothing";
  scratch_.Write("experiments/1/output/ckpt-2400", "");
  const absl::Status refused = check(&engine_);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("output here, which a job of Slurm doesn't see"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("copy that folder to DIR/1;"));
  EXPECT_EQ(check(&engine_, "output: /claim, "), absl::OkStatus());
  EXPECT_EQ(check(nullptr), absl::OkStatus()) << "a supervisor here sees it";
  played_.ask = nullptr;
  EXPECT_EQ(check(&engine_), absl::OkStatus()) << "so do jobs that share the folder";
  scratch_.Write("experiments/1/far_left", "ckpt-2500\n");
  for (JobEngine* const engine : {static_cast<JobEngine*>(&engine_), static_cast<JobEngine*>(nullptr)})
    EXPECT_THAT(std::string(check(engine).message()), HasSubstr("experiments/1/far_left names the rest"));
}

TEST_F(JobCollectorTest, WhatHasFinishedOfAGridNeedsItsOutputOnlyWhenItRunsAgain) {
  NewExperiment next = Grid(2);
  next.file_text = "project: toaster\ntrain: {framework: any, run: x}\n";
  const int64_t grid = Create(*near_, next);
  const auto check = [&](int run) {
    return CheckOutputIsFound(home_, *near_, Get(*near_, {grid, run}), next, &engine_);
  };
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(home_.output({grid, 1})).ok());
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(home_.output({grid, 1}) + "/ckpt").ok());
  EXPECT_THAT(std::string(check(0).message()), HasSubstr("copy that folder to DIR/2/1;"));
  Bring(*near_, {grid, 1}, RunState::kFinished);
  EXPECT_EQ(check(0), absl::OkStatus());
  EXPECT_THAT(std::string(check(1).message()), HasSubstr("DIR/2/1;")) << "it was named";
  next.runs[0]["learning-rate"] = "7";
  EXPECT_THAT(std::string(check(0).message()), HasSubstr("DIR/2/1;")) << "another run";
}

// The second run of a grid waits for its turn while the first one has a job.
class TurnOfJobTest : public JobCollectorTest {
 protected:
  TurnOfJobTest() {
    Put(first_, {.engine = "slurm", .id = "first", .host = waits_.host});
    Put(second_, waits_);
    scratch_.Write("experiments/2/runs/2/job.sh", "script\n");
    played_.news["first"] = {.phase = JobPhase::kRuns};
    EXPECT_EQ(collector_of_second_.Step().value(), false);
  }
  void Put(const ExperimentId& id, const JobOfRun& job) const {
    ASSERT_TRUE(PosixFileSystem().CreateDirectory(home_.folder(id)).ok());
    ASSERT_TRUE(WriteJobFile(home_.job(id), job).ok());
  }

  const int64_t grid_ = Create(*near_, Grid(2));
  const ExperimentId first_ = {grid_, 1}, second_ = {grid_, 2};
  JobOfRun waits_ = {.engine = "slurm", .id = "second", .host = MachineId::This().host, .again_at = 1, .turn = 1};
  JobCollector collector_of_second_{means_, second_};
};

TEST_F(TurnOfJobTest, WhileOtherRunsComeFirstNobodyIsAsked) {
  const int looks = played_.looks;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(collector_of_second_.Step().value(), false);
  EXPECT_EQ(played_.looks, looks);
  clock_.Advance(absl::Minutes(5));
  EXPECT_EQ(collector_of_second_.Step().value(), false);
  EXPECT_EQ(played_.looks, looks + 1) << "the first one's collector may have been killed";
  Bring(*near_, first_, RunState::kFinished);
  EXPECT_EQ(collector_of_second_.Step().value(), false);
  EXPECT_THAT(played_.submitted, SizeIs(1));
}

TEST_F(TurnOfJobTest, AKilledRunEndsBeforeItsTurn) {
  waits_.killed = true;
  Put(second_, waits_);
  EXPECT_EQ(collector_of_second_.Step().value(), true);
  EXPECT_EQ(Get(*near_, second_).state, RunState::kKilled);
}

class FarJobWatchTest : public JobCollectorTest {
 protected:
  JobWatch looks_{home_, *near_, [this](const std::string&, const std::string&) -> std::unique_ptr<JobEngine> {
                    return std::make_unique<PlayedJobEngine>(played_);
                  }};
};

TEST_F(FarJobWatchTest, EveryLookFetches) {
  ASSERT_TRUE(Step().ok());
  BringFar(id_, RunState::kRunning);
  ASSERT_EQ(unlink(FarFile(home_, id_, kFarFreshName).c_str()), 0);
  looks_.Look();
  EXPECT_EQ(Get(*near_, id_).state, RunState::kRunning);
  EXPECT_TRUE(IsFarWanted(home_, id_));
}

TEST_F(FarJobWatchTest, SaysWhatCantBeFetched) {
  looks_.Look();
  ASSERT_NE(looks_.Find(id_), nullptr);
  EXPECT_EQ(looks_.Find(id_)->text, "job muster-1 of Slurm, which is being sent the experiment");
}

class FarSubmitTest : public FarHomesFixture {
 protected:
  JobsOrder Order() const {
    return {.home = home_,
            .muster = "/opt/muster",
            .file = ParseExperimentFile("project: toaster\ntrain: {framework: any, run: x}\n", "muster.yml").value(),
            .experiment = Single()};
  }
  const ExperimentId id_{.number = 1};
};

TEST_F(FarSubmitTest, JobsThatShareNoFolderAreMarked) {
  ASSERT_TRUE(SubmitRun(engine_, Order(), id_, {}, 0).ok());
  EXPECT_THAT(FarRuns(home_), ElementsAre(id_));
}

TEST_F(FarSubmitTest, ItsCollectorIsStartedBeforeTheJobIsMade) {
  played_.refusal = absl::InvalidArgumentError("no");
  JobsOrder order = Order();
  EXPECT_FALSE(SubmitRun(engine_, order, id_, {}, 0).ok());
  EXPECT_FALSE(scratch_.Has("experiments/1/far.log"));
  order.collectors = SupervisorStart{.muster_command = "/no/such/muster"};
  EXPECT_FALSE(SubmitRun(engine_, order, id_, {}, 0).ok());
  EXPECT_TRUE(scratch_.Has("experiments/1/far.log")) << "it was tried, although nothing was submitted";
}

TEST_F(FarSubmitTest, TheJobIsNotedBeforeItIsMade) {
  played_.id_in = "muster-9";
  played_.refusal = absl::UnavailableError("nothing within 2m");
  EXPECT_FALSE(SubmitRun(engine_, Order(), id_, {}, 0).ok());
  ASSERT_TRUE(JobMarkedFar(home_, id_).has_value()) << "the engine may have made it";
  EXPECT_EQ(JobMarkedFar(home_, id_)->id, "muster-9");
  EXPECT_EQ(JobMarkedFar(home_, id_)->engine, "slurm");
  played_.refusal = absl::InvalidArgumentError("no");
  EXPECT_FALSE(SubmitRun(engine_, Order(), id_, {}, 0).ok());
  EXPECT_FALSE(IsFar(home_, id_));
}

TEST_F(FarSubmitTest, WithoutRoomItWaitsForItsCollector) {
  played_.id_in = "muster-9";
  played_.refusal = absl::ResourceExhaustedError("the quota is full");
  EXPECT_EQ(*SubmitRun(engine_, Order(), id_, {}, 0), "muster-9");
  const JobOfRun job = **ReadJobFile(home_.job(id_));
  EXPECT_GT(job.again_at, 0);
  EXPECT_EQ(job.no_room, "the quota is full");
  EXPECT_EQ(job.tries, 1);
  EXPECT_TRUE(IsFar(home_, id_));
}

TEST_F(FarSubmitTest, WithoutRoomAndWithASingleTryItIsRefused) {
  played_.terms.start_tries = 1;
  played_.refusal = absl::ResourceExhaustedError("the quota is full");
  const absl::Status refused = SubmitRun(engine_, Order(), id_, {}, 0).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_FALSE(IsFar(home_, id_));
  EXPECT_EQ(*ReadJobFile(home_.job(id_)), std::nullopt);
}

TEST_F(FarSubmitTest, AJobThatCantBeWrittenDownIsEnded) {
  // A folder in place of the file.
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(home_.job(id_)).ok());
  scratch_.Write("experiments/1/job/x", "");
  EXPECT_FALSE(SubmitRun(engine_, Order(), id_, {}, 0).ok());
  EXPECT_THAT(played_.ended, ElementsAre(Pair("101", JobEnd::kCancel)));
  EXPECT_FALSE(IsFar(home_, id_));
}

TEST_F(FarSubmitTest, JobsThatShareTheFolderAreNot) {
  played_.ask = {};
  ASSERT_TRUE(SubmitRun(engine_, Order(), id_, {}, 0).ok());
  EXPECT_THAT(FarRuns(home_), IsEmpty());
}

}  // namespace
}  // namespace muster::job_collector_test
