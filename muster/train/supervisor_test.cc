#include "muster/train/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/train/event_file_reader.h"
#include "muster/train/training_process.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kTasks = {"chief:0", "worker:0"};

class SupervisorTest : public ::testing::Test {
 protected:
  SessionEnvironment Environment(TrainingProcess& process) {
    SessionEnvironment environment = process.Environment();
    environment.wait_clock = &clock_;
    return environment;
  }
  std::vector<std::string> Checkpoints() {
    return ListCheckpoints(store_.files, "model").value_or(std::vector<std::string>());
  }
  // Of the only event file; what the threads write in any order, sorted.
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    const auto names = store_.files.ListDirectory("model");
    for (const std::string& name : names.value_or(std::vector<std::string>()))
      if (absl::StartsWith(name, "events."))
        for (const SummaryEvent& event : ReadEventFile(*store_.files.ReadFile(JoinPath("model", name))))
          events.push_back(event.ToString().substr(0, event.ToString().find('=')));
    std::sort(events.begin(), events.end());
    return events;
  }
  void Steps(Supervisor& supervisor, int steps) {
    for (int i = 0; i < steps; ++i) ASSERT_EQ(supervisor.Run().status(), absl::OkStatus());
  }

  SimulatedWaitClock clock_;
  SimulatedStore store_{1, kTasks, {.lease = absl::Hours(100)}};
  TrainingProcess chief_{store_, "chief:0"};
  TrainingProcess worker_{store_, "worker:0"};
};

TEST_F(SupervisorTest, ThreadsSaveAndSummariseAtOnceAndEverySoOften) {
  Supervisor supervisor(Environment(chief_), {.logdir = "model"});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  clock_.AwaitWaiters(3);
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0"));
  Steps(supervisor, 2);
  for (int i = 0; i < 4; ++i) {
    clock_.Advance(absl::Seconds(120));
    clock_.AwaitWaiters(3);
  }
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0")) << "save_model_secs is 600";
  Steps(supervisor, 1);
  clock_.Advance(absl::Seconds(120));
  clock_.AwaitWaiters(3);
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-3"));
  Steps(supervisor, 1);
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-3")) << "as TensorFlow: Save is the program's";
  EXPECT_THAT(Events(),
              ElementsAre("0: CHECKPOINT model/model.ckpt-0", "1: START", "1: loss", "2: global_step/sec",
                          "2: global_step/sec", "2: global_step/sec", "2: global_step/sec",
                          "3: CHECKPOINT model/model.ckpt-3", "3: global_step/sec", "3: loss", "4: STOP", "4: loss"));
}

TEST_F(SupervisorTest, AWorkerWaitsAndHasNoServices) {
  chief_.StartAsChief();
  Supervisor supervisor(Environment(worker_), {.logdir = "model"});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  EXPECT_FALSE(supervisor.is_chief());
  Steps(supervisor, 2);
  EXPECT_EQ(supervisor.global_step(), 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor.Save().status()));
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
  EXPECT_THAT(Checkpoints(), IsEmpty());
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(SupervisorTest, AWorkerWhoseChiefNeverComesSaysSo) {
  Supervisor supervisor(Environment(worker_), {.max_wait_secs = 60});
  EXPECT_TRUE(absl::IsDeadlineExceeded(supervisor.PrepareOrWaitForSession()));
}

TEST_F(SupervisorTest, SaveIsACheckpointNow) {
  Supervisor supervisor(Environment(chief_), {.logdir = "model", .save_summaries_secs = 0, .save_model_secs = 0});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  Steps(supervisor, 5);
  EXPECT_EQ(*supervisor.Save(), "model/model.ckpt-5");
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor.Save().status()));
  EXPECT_EQ(supervisor.Run().status(), absl::FailedPreconditionError("Attempted to use a closed Session."));
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-5"));
}

TEST_F(SupervisorTest, AManagedSessionEndsInOrderAndThePsHearOfIt) {
  Supervisor supervisor(Environment(chief_), {});
  EXPECT_EQ(supervisor.ManagedSession([&] {
    for (int i = 0; i < 3 && !supervisor.ShouldStop(); ++i)
      if (const auto result = supervisor.Run(); !result.ok()) return result.status();
    return absl::OkStatus();
  }),
            absl::OkStatus());
  EXPECT_TRUE(supervisor.ShouldStop());
  EXPECT_EQ(supervisor.global_step(), 3);
  EXPECT_TRUE(store_.service(0).MakeView().clients->chief_done());
}

TEST_F(SupervisorTest, TheBodysErrorStopsEveryThreadAndIsReturned) {
  Supervisor supervisor(Environment(chief_), {.logdir = "model"});
  EXPECT_EQ(supervisor.ManagedSession([] { return absl::DataLossError("bad image"); }),
            absl::DataLossError("bad image"));
}

TEST_F(SupervisorTest, TheEndOfTheInputIsACleanEnd) {
  Supervisor supervisor(Environment(chief_), {});
  EXPECT_EQ(supervisor.ManagedSession([] { return absl::OutOfRangeError("end of input"); }), absl::OkStatus());
}

TEST_F(SupervisorTest, ALoopOfTheProgramStopsTheTrainingWhenItFails) {
  Supervisor supervisor(Environment(chief_), {});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  int calls = 0;
  supervisor.Loop(10, [&calls] { return ++calls < 3 ? absl::OkStatus() : absl::InternalError("third"); });
  for (int i = 0; i < 2; ++i) {
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(10));
  }
  EXPECT_TRUE(supervisor.WaitForStop());
  EXPECT_EQ(supervisor.Stop(), absl::InternalError("third"));
  EXPECT_EQ(calls, 3);
}

TEST_F(SupervisorTest, QueueRunnersStopWithIt) {
  bool cancelled = false;
  QueueRunner runner(
      {.enqueue = {[] { return absl::OutOfRangeError("end of input"); }}, .close = [&cancelled](bool cancel) {
         cancelled = cancelled || cancel;
         return absl::OkStatus();
       }});
  Supervisor supervisor(Environment(chief_), {});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  ASSERT_EQ(supervisor.StartQueueRunners({&runner}), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(supervisor.StartQueueRunners({&runner})));
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
  EXPECT_TRUE(cancelled);
}

TEST_F(SupervisorTest, ItHasOneSession) {
  Supervisor supervisor(Environment(chief_), {});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor.PrepareOrWaitForSession()));
}

}  // namespace
}  // namespace muster
