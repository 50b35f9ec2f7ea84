#include "muster/launch/jobs/job_kill.h"

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <utility>

#include "muster/base/testing/full_disk.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/registry/files/machine_id.h"
#include "muster/launch/registry/files/requests.h"
#include "muster/launch/testing/played_job_engine.h"
#include "muster/launch/testing/registry_fixture.h"

namespace muster::job_kill_test {
namespace {

using ::testing::ContainsRegex, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Pair,
    ::testing::SizeIs;

constexpr absl::Duration kGrace = absl::Seconds(40), kMoment = absl::Milliseconds(1);
constexpr char kCancelling[] = "cancelling job 17 of Slurm";

class JobKillTest : public RegistryFixture {
 protected:
  JobKillTest() {
    EXPECT_TRUE(PosixFileSystem().CreateDirectory(home_.folder(id_)).ok());
    EXPECT_TRUE(WriteJobFile(home_.job(id_), job_).ok());
  }
  JobKill Kill(JobPhase phase) {
    return JobKill(
        {home_, *registry_, watch_, clock_, [this](const std::string& line) { said_.push_back(line); }},
        {.id = id_, .run = {.job = job_, .news = {.phase = phase}, .text = "job 17 of Slurm"}, .stop_grace = kGrace});
  }
  // What the supervisor does each second.
  std::vector<KillRequest> Answer() const { return AnswerRequests(home_.requests(id_)); }

  PlayedJobs engine_;
  const std::unique_ptr<Registry> registry_ = Open();
  const ExperimentId id_{.number = Create(*registry_, Single())};
  const JobOfRun job_{.engine = "slurm", .id = "17", .host = "login"};
  JobWatch watch_{home_, *registry_, [this](const std::string&, const std::string&) -> std::unique_ptr<JobEngine> {
                    return std::make_unique<PlayedJobEngine>(engine_);
                  }};
  std::vector<std::string> said_;
};

TEST_F(JobKillTest, AJobThatHasntGotTheExperimentYetIsCancelled) {
  ASSERT_TRUE(MarkFar(home_, id_).ok());
  JobKill kill = Kill(JobPhase::kRuns);
  ASSERT_TRUE(kill.Begin(/*now=*/false).ok());
  EXPECT_FALSE(kill.asked_supervisor());
  EXPECT_THAT(engine_.ended, ElementsAre(Pair("17", JobEnd::kCancel)));
}

TEST_F(JobKillTest, OneThatHasGotItIsAsked) {
  ASSERT_TRUE(MarkFar(home_, id_).ok());
  ASSERT_TRUE(NoteSent(home_, id_, "17").ok());
  JobKill kill = Kill(JobPhase::kRuns);
  ASSERT_TRUE(kill.Begin(/*now=*/false).ok());
  EXPECT_TRUE(kill.asked_supervisor());
}

TEST_F(JobKillTest, TheRequestIsFirstThenTheScriptIsAskedAndAfterTheGraceTheJobIsCancelled) {
  JobKill kill = Kill(JobPhase::kRuns);
  ASSERT_TRUE(kill.Begin(/*now=*/false).ok());
  EXPECT_TRUE(kill.asked_supervisor());
  EXPECT_TRUE(ReadJobFile(home_.job(id_)).value()->killed);
  clock_.Advance(JobKill::kAnswerPatience);
  EXPECT_FALSE(*kill.HasEndedNow());
  EXPECT_THAT(engine_.ended, IsEmpty()) << "the supervisor has its time to answer";
  clock_.Advance(kMoment);
  for (int looks = 0; looks < 3; ++looks) EXPECT_FALSE(*kill.HasEndedNow());
  EXPECT_THAT(engine_.ended, ElementsAre(Pair("17", JobEnd::kAsk))) << "once";
  EXPECT_THAT(said_, ElementsAre("its supervisor doesn't answer: having job 17 of Slurm end"));
  clock_.Advance(JobKill::kEndPatience + kGrace - kMoment);
  EXPECT_FALSE(*kill.HasEndedNow());
  EXPECT_THAT(engine_.ended, SizeIs(1)) << "the tasks have their grace";
  clock_.Advance(kMoment);
  for (int looks = 0; looks < 3; ++looks) EXPECT_FALSE(*kill.HasEndedNow());
  EXPECT_THAT(engine_.ended, ElementsAre(Pair("17", JobEnd::kAsk), Pair("17", JobEnd::kCancel)));
  EXPECT_EQ(said_.back(), kCancelling);
  EXPECT_THAT(Answer(), SizeIs(1)) << "the request still stands";
}

TEST_F(JobKillTest, AJobWhoseSupervisorAnswersIsCancelledWhenItTakesTooLong) {
  JobKill kill = Kill(JobPhase::kRuns);
  ASSERT_TRUE(kill.Begin(/*now=*/false).ok());
  ASSERT_THAT(Answer(), SizeIs(1));
  clock_.Advance(JobKill::kAnswerPatience + JobKill::kEndPatience + kGrace);
  EXPECT_FALSE(*kill.HasEndedNow());
  EXPECT_THAT(engine_.ended, IsEmpty());
  clock_.Advance(kMoment);
  EXPECT_FALSE(*kill.HasEndedNow());
  EXPECT_THAT(engine_.ended, ElementsAre(Pair("17", JobEnd::kCancel)));
}

TEST_F(JobKillTest, ARunThatHasEndedNeedsNothingMore) {
  JobKill kill = Kill(JobPhase::kRuns);
  ASSERT_TRUE(kill.Begin(/*now=*/false).ok());
  Bring(*registry_, id_, RunState::kKilled);
  clock_.Advance(absl::Hours(1));
  EXPECT_TRUE(*kill.HasEndedNow());
  EXPECT_THAT(engine_.ended, IsEmpty());
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(JobKillTest, AtOnceTheScriptIsNotAsked) {
  JobKill kill = Kill(JobPhase::kRuns);
  ASSERT_TRUE(kill.Begin(/*now=*/true).ok());
  clock_.Advance(JobKill::kAnswerPatience + kMoment);
  EXPECT_FALSE(*kill.HasEndedNow());
  EXPECT_THAT(engine_.ended, ElementsAre(Pair("17", JobEnd::kCancel)));
  EXPECT_TRUE(Answer().front().now);
}

TEST_F(JobKillTest, ASecondThoughtIsAnotherRequestWithItsOwnTime) {
  JobKill kill = Kill(JobPhase::kRuns);
  ASSERT_TRUE(kill.Begin(/*now=*/false).ok());
  ASSERT_THAT(Answer(), SizeIs(1));
  clock_.Advance(JobKill::kAnswerPatience);
  ASSERT_TRUE(kill.KillNow().ok());
  ASSERT_TRUE(kill.KillNow().ok());
  clock_.Advance(JobKill::kAnswerPatience);
  EXPECT_FALSE(*kill.HasEndedNow());
  EXPECT_THAT(engine_.ended, IsEmpty());
  const std::vector<KillRequest> asked = Answer();
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_TRUE(asked.front().now);
}

// An empty file takes no room, a request does.
TEST_F(JobKillTest, WithoutRoomForARequestTheScriptIsAskedAtOnceAndTheJobCancelledAtASecondThought) {
  JobKill kill = Kill(JobPhase::kRuns);
  std::optional<FullDisk> full(std::in_place, 0);
  const absl::Status begun = kill.Begin(/*now=*/false);
  const auto asked = engine_.ended;
  const absl::Status at_once = kill.KillNow();
  full.reset();
  EXPECT_EQ(begun, absl::OkStatus());
  EXPECT_THAT(asked, ElementsAre(Pair("17", JobEnd::kAsk)));
  EXPECT_EQ(at_once, absl::OkStatus());
  EXPECT_THAT(engine_.ended, ElementsAre(Pair("17", JobEnd::kAsk), Pair("17", JobEnd::kCancel)));
  EXPECT_THAT(said_, ElementsAre(ContainsRegex("^no room for .*: having job 17 of Slurm end$"),
                                 ContainsRegex("^no room for .*: cancelling job 17 of Slurm$")));
  EXPECT_TRUE(ReadJobFile(home_.job(id_)).value()->killed) << "by which the supervisor knows that it is a kill";
  EXPECT_THAT(Answer(), IsEmpty());
}

TEST_F(JobKillTest, AJobThatWaitsIsCancelledAtOnce) {
  JobKill kill = Kill(JobPhase::kWaits);
  ASSERT_TRUE(kill.Begin(/*now=*/false).ok());
  EXPECT_FALSE(kill.asked_supervisor());
  EXPECT_THAT(engine_.ended, ElementsAre(Pair("17", JobEnd::kCancel)));
  EXPECT_THAT(said_, ElementsAre(kCancelling));
  EXPECT_TRUE(ReadJobFile(home_.job(id_)).value()->killed) << "its supervisor doesn't begin";
}

// Slurm has lost the processes of its script: no step's daemon was left to kill them.
TEST_F(JobKillTest, ASupervisorThatLivesIsAskedAlsoIfItsJobIsGone) {
  for (const JobPhase phase : {JobPhase::kEnded, JobPhase::kUnknown}) {
    ASSERT_TRUE(registry_->Renew(id_).ok());
    JobKill kill = Kill(phase);
    ASSERT_TRUE(kill.Begin(/*now=*/false).ok());
    EXPECT_TRUE(kill.asked_supervisor());
    EXPECT_THAT(engine_.ended, IsEmpty());
    EXPECT_THAT(Answer(), SizeIs(1));
  }
}

TEST_F(JobKillTest, ARunWithoutAJobIsntSubmittedAgain) {
  JobOfRun job = job_;
  job.again_at = 2e9;
  ASSERT_TRUE(WriteJobFile(home_.job(id_), job).ok());
  JobKill kill = Kill(JobPhase::kWaits);
  ASSERT_TRUE(kill.Begin(/*now=*/false).ok());
  EXPECT_THAT(engine_.ended, IsEmpty()) << "there is nothing to cancel";
  EXPECT_TRUE(ReadJobFile(home_.job(id_)).value()->killed);
  watch_.Look();
  EXPECT_TRUE(*kill.HasEndedNow());
  EXPECT_EQ(Get(*registry_, id_).state, RunState::kKilled);
}

// A run that has no job, while another process submits it again.
class JobKillWhileSubmittedTest : public JobKillTest {
 protected:
  JobKillWhileSubmittedTest() {
    JobOfRun job = job_;
    job.host = MachineId::This().host;
    job.again_at = 1;  // long ago
    EXPECT_TRUE(WriteJobFile(home_.job(id_), job).ok());
    scratch_.Write("experiments/1/job.sh", "script\n");
    engine_.id_in = "101";
  }
  // Kills it in that moment, while a look submits it.
  void KillAt(std::function<void()>& moment) {
    moment = [this] {
      engine_.on_end = engine_.on_submit = nullptr;
      ASSERT_TRUE(kill_.Begin(/*now=*/false).ok());
    };
    watch_.Look();
    EXPECT_THAT(engine_.submitted, SizeIs(1));
    EXPECT_EQ(engine_.ended.back(), std::pair(std::string("101"), JobEnd::kCancel));
    EXPECT_EQ(Get(*registry_, id_).state, RunState::kKilled);
    EXPECT_TRUE(*kill_.HasEndedNow());
  }
  JobKill kill_ = Kill(JobPhase::kWaits);
};

TEST_F(JobKillWhileSubmittedTest, TheKillWinsOverWhatWasReadBefore) { KillAt(engine_.on_end); }

TEST_F(JobKillWhileSubmittedTest, TheKillWinsWhileTheJobIsMade) { KillAt(engine_.on_submit); }

TEST_F(JobKillWhileSubmittedTest, AJobThatCouldNotBeEndedThenIsCancelledByTheKill) {
  ASSERT_TRUE(kill_.Begin(/*now=*/false).ok());
  // What a process that was killed between submitting and looking for the note has left.
  JobOfRun job = job_;
  job.id = "101";
  ASSERT_TRUE(WriteJobFile(home_.job(id_), job).ok());
  EXPECT_FALSE(*kill_.HasEndedNow());
  EXPECT_THAT(engine_.ended, ElementsAre(Pair("101", JobEnd::kCancel)));
  EXPECT_FALSE(*kill_.HasEndedNow());
  EXPECT_THAT(engine_.ended, SizeIs(1)) << "once";
}

TEST_F(JobKillTest, AnEngineThatCannotBeToldIsAnError) {
  engine_.silence = absl::UnavailableError("no controller");
  EXPECT_EQ(Kill(JobPhase::kWaits).Begin(/*now=*/false), engine_.silence);
}

// A cluster that is gone, whose supervisor has never been heard.
TEST_F(JobKillTest, ARunWhoseEngineIsGoneIsKilledAllTheSame) {
  engine_.silence = absl::UnavailableError("no dashboard");
  JobKill kill = Kill(JobPhase::kRuns);
  ASSERT_TRUE(kill.Begin(/*now=*/true).ok());
  clock_.Advance(absl::Minutes(1));
  ASSERT_TRUE(kill.HasEndedNow().ok());
  EXPECT_EQ(Get(*registry_, id_).state, RunState::kKilled);
  EXPECT_THAT(said_.back(), HasSubstr("killed here alone, as its job can't be ended: no dashboard"));
}

}  // namespace
}  // namespace muster::job_kill_test
