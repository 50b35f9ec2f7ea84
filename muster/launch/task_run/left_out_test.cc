// Runs that go on without a host on which only the evaluator was to be, over a backend that only notes what it is asked
// for.
#include "muster/launch/task_run/left_out.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/launch/task_run/code_copy.h"
#include "muster/launch/task_run/task_run.h"
#include "muster/launch/testing/scripted_backend.h"

namespace muster::left_out_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

const TaskId kChief{kMasterJob, 0}, kEvaluator{kEvaluatorJob, 0};

HostPlan PlanOfThree() {
  return {.hosts = {{.name = "h1"}, {.name = "h2"}, {.name = "h3"}, {.name = "h4"}},
          .placement = {{kChief, "h3"}, {kEvaluator, "h2"}, {{kWorkerJob, 0}, "h1"}},
          .optional_hosts = {"h2"},
          .ssh_config = "",
          .muster = ""};
}

TEST(LeftOutTest, TheEvaluatorMayGoToAHostWithTasksOrToTheChiefs) {
  const MoveWish wish = ElsewhereIn(PlanOfThree(), kChief);
  EXPECT_THAT(wish.hosts, ElementsAre("h1", "h3")) << "not to h4, which doesn't get the code";
  EXPECT_EQ(wish.last_resort, "h3");
  EXPECT_EQ(wish.others.size(), 3U);
}

TEST(LeftOutTest, APlanWithoutOptionalHostsLetsNothingGoElsewhere) {
  HostPlan plan = PlanOfThree();
  plan.optional_hosts.clear();
  EXPECT_THAT(ElsewhereIn(plan, kChief).hosts, IsEmpty());
  EXPECT_THAT(ElsewhereIn(HostPlan(), kChief).hosts, IsEmpty()) << "nothing has a place on one machine";
}

// The numbers of transfers are in the plan that the backend has.
TEST(LeftOutTest, AHostThatIsLeftOutKeepsItsNumberAmongThoseWithTasks) {
  HostPlan plan = PlanOfThree();
  const std::vector<std::string> before = HostsWithTasks(plan);
  EXPECT_THAT(LeftOutHosts(plan), IsEmpty());
  plan.placement[kEvaluator] = "h1";
  EXPECT_EQ(HostsWithTasks(plan), before);
  EXPECT_THAT(before, ElementsAre("h1", "h2", "h3"));
  EXPECT_THAT(LeftOutHosts(plan), ElementsAre("h2"));
}

class LeftOutRunTest : public ::testing::Test, public TaskRunClient {
 protected:
  void OnOutput(const TaskId&, OutputStream, std::string_view) override {}
  void OnOutputEnd(const TaskId&) override {}
  std::deque<std::string> LastLines(const TaskId&) const override { return {}; }
  void OnStarted(const ProcessSpec& spec, const LocalProcess&) override { started_.push_back(spec.task); }
  void OnPlaced(const TaskId& task, const std::string& host) override { placed_[task] = host; }
  MoveWish MayMoveTo(const TaskId&) override { return {.hosts = {"h1"}}; }
  bool LearnsOfMoves() const override { return false; }
  absl::StatusOr<std::vector<ProcessSpec>> PlanAgain(const TaskId&, const std::string&, const ReservedPorts&) override {
    return Processes();
  }
  static std::vector<ProcessSpec> Processes() {
    return {{.task = kChief, .arguments = {"x"}}, {.task = kEvaluator, .arguments = {"x"}}};
  }
  void Say(const std::string& line) override { said_ += line + "\n"; }
  void Wait() override {
    if (steps_.empty()) {
      ADD_FAILURE() << "it waits for more: " << said_;
      exit(1);
    }
    const std::function<void()> step = std::move(steps_.front());
    steps_.pop_front();
    step();
    run_.RunRound(absl::InfinitePast());
  }
  void Reserve() {
    ASSERT_EQ(run_.Start(), absl::OkStatus());
    steps_ = {[&] {
      run_.OnReserved(kChief, {"h3:1"});
      run_.OnReserved(kEvaluator, {});
    }};
    ASSERT_TRUE(run_.Reserve({{kChief, {0}, {}}, {kEvaluator, {}, ElsewhereIn(PlanOfThree(), kChief)}}).ok());
    script_.Taken();
  }
  absl::Status Launch(std::function<void()> answer) {
    steps_ = {std::move(answer)};
    return run_.Launch(Processes());
  }
  void Supervise(std::vector<std::function<void()>> steps, RestartWhen restart = RestartWhen::kNever) {
    steps_ = {steps.begin(), steps.end()};
    run_.Supervise({.chief = kChief, .rule = EndRule::kAllDecide, .restart_policy = [=](const TaskId&) {
                      return RestartPolicy{.when = restart};
                    }});
  }

  Script script_;
  std::string said_;
  std::vector<TaskId> started_;
  std::map<TaskId, std::string> placed_;
  std::deque<std::function<void()>> steps_;
  SimulatedClock clock_;
  TaskRun run_{{.backend = {.plan = PlanOfThree(), .clock = &clock_},
                .make_backend = [this](BackendEvents&) { return std::make_unique<ScriptedBackend>(script_); }},
               *this};
};

TEST_F(LeftOutRunTest, TheUserAndTheClientLearnWhereTheEvaluatorIs) {
  ASSERT_EQ(run_.Start(), absl::OkStatus());
  steps_ = {[&] {
    run_.OnReserved(kChief, {"h3:1"});
    run_.OnPlaced(kEvaluator, "h1", "h2 isn't used: it is off");
    run_.OnReserved(kEvaluator, {});
  }};
  ASSERT_TRUE(run_.Reserve({{kChief, {0}, {}}, {kEvaluator, {}, ElsewhereIn(PlanOfThree(), kChief)}}).ok());
  EXPECT_EQ(said_, "h2 isn't used: it is off; evaluator:0 runs on h1 instead\n");
  EXPECT_THAT(placed_, ElementsAre(std::pair(kEvaluator, "h1")));
  EXPECT_EQ(script_.elsewhere.size(), 1U) << "nothing else may go";
  EXPECT_EQ(script_.elsewhere[kEvaluator].last_resort, "h3");
}

TEST_F(LeftOutRunTest, AHostThatFailsLaterIsLeftOutLikewise) {
  Reserve();
  script_.left_behind = {kEvaluator};
  steps_ = {[&] {
    EXPECT_THAT(script_.Taken(), ElementsAre("leave out h2: its disk is full", "reserve evaluator:0"));
    run_.OnPlaced(kEvaluator, "h1", "h2 isn't used: its disk is full");
    run_.OnReserved(kEvaluator, {});
  }};
  EXPECT_EQ(run_.LeaveOut("h2", "its disk is full"), absl::OkStatus());
  EXPECT_EQ(placed_[kEvaluator], "h1");
}

TEST_F(LeftOutRunTest, AnEvaluatorWhoseHostIsLostBeforeItsStartEndsNobody) {
  Reserve();
  EXPECT_EQ(Launch([&] {
              run_.OnStarted(kChief, {.pid = 1});
              run_.OnNotStarted(kEvaluator, absl::UnavailableError("h2 is lost"));
            }),
            absl::OkStatus());
  Supervise({[&] { run_.OnExit(kChief, {}); }});
  EXPECT_TRUE(run_.supervisor()->succeeded());
  EXPECT_THAT(started_, ElementsAre(kChief));
  EXPECT_THAT(said_, HasSubstr("evaluator:0 can't be started: h2 is lost\n"));
  EXPECT_THAT(script_.Taken(), ElementsAre("launch master:0 at ", "launch evaluator:0 at "));
}

TEST_F(LeftOutRunTest, AnEvaluatorWithoutItsProgramIsAMistakeOfTheUser) {
  Reserve();
  EXPECT_TRUE(absl::IsNotFound(Launch([&] {
    run_.OnStarted(kChief, {.pid = 1});
    run_.OnNotStarted(kEvaluator, absl::NotFoundError("no such program"));
  })));
  EXPECT_EQ(run_.start_failure()->task, kEvaluator);
}

TEST_F(LeftOutRunTest, AChiefWhoseHostIsLostBeforeItsStartIsAFailure) {
  Reserve();
  EXPECT_TRUE(absl::IsUnavailable(Launch([&] {
    run_.OnStarted(kEvaluator, {.pid = 1});
    run_.OnNotStarted(kChief, absl::UnavailableError("h3 is lost"));
  })));
}

// The programs can't learn of new addresses, but the evaluator has none.
TEST_F(LeftOutRunTest, AnEvaluatorThatMovesEndsNobody) {
  Reserve();
  ASSERT_EQ(Launch([&] {
              run_.OnStarted(kChief, {.pid = 1});
              run_.OnStarted(kEvaluator, {.pid = 2});
            }),
            absl::OkStatus());
  script_.Taken();
  script_.move_to = "h1";
  Supervise({[&] {
               run_.OnExit(kEvaluator, {.signal = SIGKILL, .host_lost = true});
               EXPECT_THAT(script_.Taken(), ElementsAre("reserve evaluator:0"));
             },
             [&] {
               run_.OnReserved(kEvaluator, {});
               EXPECT_THAT(script_.Taken(), ElementsAre("hosts master:0 h3:1\n", "launch evaluator:0 at "));
               run_.OnStarted(kEvaluator, {.pid = 3});
             },
             [&] {
               run_.OnExit(kChief, {});
               run_.OnExit(kEvaluator, {});
             }},
            RestartWhen::kOnFailure);
  EXPECT_TRUE(run_.supervisor()->succeeded());
}

// Its host may count as lost only much later.
TEST_F(LeftOutRunTest, AnEvaluatorOutOfReachIsNotWaitedForOnceTrainingIsOver) {
  Reserve();
  ASSERT_EQ(Launch([&] {
              run_.OnStarted(kChief, {.pid = 1});
              run_.OnStarted(kEvaluator, {.pid = 2});
            }),
            absl::OkStatus());
  script_.Taken();
  Supervise({[&] {
               run_.OnOutOfReach(kEvaluator);
               EXPECT_THAT(script_.Taken(), IsEmpty()) << "it may be heard again";
               run_.OnExit(kChief, {});
             },
             [&] { run_.OnOutOfReach(kEvaluator); }});
  EXPECT_TRUE(run_.supervisor()->succeeded());
  EXPECT_THAT(script_.Taken(), ElementsAre("give up evaluator:0"));
  EXPECT_THAT(said_, HasSubstr("evaluator:0 is out of reach, and isn't waited for\n"));
}

}  // namespace
}  // namespace muster::left_out_test
