// Tests what a run does when it loses its evaluator's host: under neither rule it ends because of that.
#include <gmock/gmock.h>
#include <signal.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/launch/supervise/task_supervisor.h"
#include "muster/launch/testing/noting_backend.h"

namespace muster::lost_evaluator_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

const TaskId kPs{kPsJob, 0}, kChief{kMasterJob, 0}, kWorker{kWorkerJob, 0}, kEvaluator{kEvaluatorJob, 0};
constexpr ExitStatus kLost{.signal = SIGKILL, .host_lost = true};

class LostEvaluatorTest : public ::testing::TestWithParam<EndRule> {
 protected:
  void Start(RestartPolicy policy = {.when = RestartWhen::kNever}) {
    TaskSupervisorOptions options{.chief = kChief, .rule = GetParam()};
    options.restart_policy = [policy](const TaskId&) { return policy; };
    options.relaunch = [this](const TaskId& task) { relaunched_.push_back(task); };
    supervisor_ =
        std::make_unique<TaskSupervisor>(std::vector<TaskId>{kPs, kChief, kWorker, kEvaluator}, options, backend_,
                                         clock_, [this](const std::string& line) { said_ += line + "\n"; });
  }
  void EndWell() {
    for (const TaskId& task : {kWorker, kChief, kPs}) supervisor_->OnExit(task, {});
  }
  void ExpectAGoodEnd() {
    EXPECT_TRUE(supervisor_->done());
    EXPECT_EQ(supervisor_->exit_code(), 0);
    EXPECT_FALSE(supervisor_->first_failure().has_value());
    EXPECT_THAT(backend_.Take(), IsEmpty()) << "nobody is ended";
  }

  SimulatedClock clock_;
  NotingBackend backend_;
  std::string said_;
  std::vector<TaskId> relaunched_;
  std::unique_ptr<TaskSupervisor> supervisor_;
};

INSTANTIATE_TEST_SUITE_P(, LostEvaluatorTest, ::testing::Values(EndRule::kChiefDecides, EndRule::kAllDecide),
                         [](const auto& of) { return of.param == EndRule::kAllDecide ? "AllDecide" : "ChiefDecides"; });

TEST_P(LostEvaluatorTest, ItsLossIsSaidAndNoFailureOfTheRun) {
  Start();
  supervisor_->OnExit(kEvaluator, kLost);
  EXPECT_THAT(said_, HasSubstr("evaluator:0 was killed by signal 9 (killed); the others go on\n"));
  EXPECT_FALSE(supervisor_->ending());
  EndWell();
  ExpectAGoodEnd();
}

TEST_P(LostEvaluatorTest, ItIsStartedAgainWhileTheOthersTrain) {
  Start({.when = RestartWhen::kOnFailure, .limit = 1});
  supervisor_->OnExit(kEvaluator, kLost);
  EXPECT_THAT(relaunched_, ElementsAre(kEvaluator));
  supervisor_->OnStarted(kEvaluator);
  supervisor_->OnExit(kEvaluator, kLost);
  EXPECT_EQ(relaunched_.size(), 1U) << "its restarts are used up";
  EndWell();
  ExpectAGoodEnd();
}

TEST_P(LostEvaluatorTest, OneThatCantBeStartedElsewhereIsGivenUp) {
  Start({.when = RestartWhen::kOnFailure, .limit = 1});
  supervisor_->OnExit(kEvaluator, kLost);
  supervisor_->OnNotStarted(kEvaluator, absl::NotFoundError("no such program"));
  EXPECT_FALSE(supervisor_->ending());
  EndWell();
  ExpectAGoodEnd();
}

TEST_P(LostEvaluatorTest, NobodyWaitsUntilItHasAPlace) {
  Start({.when = RestartWhen::kOnFailure, .limit = 1});
  supervisor_->OnExit(kEvaluator, kLost);
  supervisor_->OnNoPlace(kEvaluator, absl::UnavailableError("h3 is off"));
  EXPECT_TRUE(supervisor_->IsOpen(kEvaluator));
  EndWell();
  ExpectAGoodEnd();
}

TEST_P(LostEvaluatorTest, AfterTheEndOfTrainingItIsNotStartedAgain) {
  Start({.when = RestartWhen::kOnFailure, .limit = 1});
  EXPECT_FALSE(supervisor_->IsUseless(kEvaluator));
  EndWell();
  EXPECT_TRUE(supervisor_->IsUseless(kEvaluator));
  EXPECT_FALSE(supervisor_->IsUseless(kWorker));
  supervisor_->OnExit(kEvaluator, kLost);
  EXPECT_THAT(relaunched_, IsEmpty());
  ExpectAGoodEnd();
}

// What it does itself counts as before.
TEST_P(LostEvaluatorTest, AnEvaluatorThatFailsByItselfIsAFailure) {
  Start();
  supervisor_->OnExit(kEvaluator, {.signal = SIGKILL});
  EXPECT_EQ(supervisor_->ending(), GetParam() == EndRule::kAllDecide);
  EXPECT_EQ(supervisor_->first_failure()->task, kEvaluator);
}

TEST_P(LostEvaluatorTest, AWorkerThatIsLostWithItsHostIsAFailure) {
  Start();
  supervisor_->OnExit(kWorker, kLost);
  EXPECT_EQ(supervisor_->ending(), GetParam() == EndRule::kAllDecide);
  EXPECT_EQ(supervisor_->first_failure()->task, kWorker);
}

}  // namespace
}  // namespace muster::lost_evaluator_test
