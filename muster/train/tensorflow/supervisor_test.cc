#include "muster/train/tensorflow/supervisor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/wrong_configuration.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/calls/shutdown_wait.h"
#include "muster/summary/event_file_reader.h"
#include "muster/train/testing/training_process.h"

namespace muster::supervisor_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

const std::vector<std::string> kTasks = {"chief:0", "worker:0"};

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() { SetUpLog(""); }  // before there are threads that write into it
  SessionEnvironment Environment(TrainingProcess& process) {
    SessionEnvironment environment = process.Environment();
    environment.wait_clock = &clock_;
    return environment;
  }
  std::vector<std::string> Checkpoints() {
    return ListCheckpoints(store_.files, "model").value_or(std::vector<std::string>());
  }
  // The events that the threads write in any order, sorted.
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    for (const SummaryEvent& event : ReadEventFiles(store_.files, "model"))
      events.push_back(event.ToString().substr(0, event.ToString().find('=')));
    std::sort(events.begin(), events.end());
    return events;
  }
  void Steps(Supervisor& supervisor, int steps) {
    for (int i = 0; i < steps; ++i) ASSERT_EQ(supervisor.Run().status(), absl::OkStatus());
  }
  static std::string LogOfStartingServices(Supervisor& supervisor) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(supervisor.StartStandardServices(), absl::OkStatus());
    return testing::internal::GetCapturedStderr();
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
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-3"))
      << "as in TensorFlow, only the program saves at the end";
  EXPECT_THAT(Events(),
              ElementsAre("0: CHECKPOINT model/model.ckpt-0", "1: START", "1: loss", "2: global_step/sec",
                          "2: global_step/sec", "2: global_step/sec", "2: global_step/sec",
                          "3: CHECKPOINT model/model.ckpt-3", "3: global_step/sec", "3: loss", "4: STOP", "4: loss"));
}

TEST_F(SupervisorTest, WhoAsksForAnotherCheckpointIsToldThatItDoesNotLoad) {
  Supervisor supervisor(Environment(chief_), {.logdir = "model"});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  Steps(supervisor, 1);
  const LoadCommand command(store_, "model/model.ckpt-0");
  Steps(supervisor, 1);
  store_.Pass(absl::Milliseconds(1));
  ASSERT_TRUE(command.answer().has_value());
  EXPECT_THAT(std::string(command.answer()->status().message()), HasSubstr("only at its start"));
  EXPECT_EQ(supervisor.Run()->global_step, 3);
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
}

TEST_F(SupervisorTest, WithinAStepItCannotBeCalledButForAStop) {
  Supervisor supervisor(Environment(chief_), {.logdir = "model"});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  std::vector<absl::Status> refused;
  chief_.source.on_step = [&](double loss) {
    refused = {supervisor.Run().status(),          supervisor.Fetch([] { return absl::OkStatus(); }),
               supervisor.Save().status(),         supervisor.SummarizeNextStep(),
               supervisor.StartStandardServices(), supervisor.Stop()};
    supervisor.RequestStop();
    return loss;
  };
  EXPECT_EQ(supervisor.Run().status(), absl::OkStatus());
  EXPECT_TRUE(supervisor.ShouldStop());
  ASSERT_EQ(refused.size(), 6u);
  for (const absl::Status& status : refused) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("within a step"));
  }
  EXPECT_EQ(supervisor.Save().status(), absl::OkStatus());
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
}

TEST_F(SupervisorTest, AFetchShowsTheGlobalValuesAndTrainsNothing) {
  Supervisor chief(Environment(chief_), {});
  Supervisor worker(Environment(worker_), {});
  EXPECT_TRUE(absl::IsFailedPrecondition(worker.Fetch([] { return absl::OkStatus(); }))) << "not prepared yet";
  ASSERT_EQ(chief.PrepareOrWaitForSession(), absl::OkStatus());
  ASSERT_EQ(worker.PrepareOrWaitForSession(), absl::OkStatus());
  Steps(chief, 2);
  const std::vector<float> own = worker_.source.values(0);
  std::vector<float> seen;
  EXPECT_EQ(worker.Fetch([&] {
    seen = worker_.source.values(0);
    return absl::OkStatus();
  }),
            absl::OkStatus());
  EXPECT_EQ(seen, chief_.source.values(0));
  EXPECT_NE(seen, own);
  EXPECT_EQ(worker_.source.values(0), own);
  EXPECT_EQ(worker.global_step(), 2);
  EXPECT_EQ(worker.Stop(), absl::OkStatus());
  EXPECT_EQ(chief.Stop(), absl::OkStatus());
}

TEST_F(SupervisorTest, AStepWritesAllThatItRegistersWhenSummariesAreDue) {
  Supervisor supervisor(Environment(chief_), {.logdir = "model", .save_model_secs = 0});
  std::vector<bool> wanted;
  chief_.source.on_step = [&](double loss) -> absl::StatusOr<double> {
    const absl::StatusOr<StepSummaries*> summaries = StepSummaries::Current("Histogram");
    if (!summaries.ok()) return summaries.status();
    wanted.push_back((*summaries)->wanted());
    (*summaries)->AddScalar("at", static_cast<double>(supervisor.global_step()));
    const float values[] = {1, 2, 3};
    if (wanted.back()) {
      EXPECT_EQ((*summaries)->AddHistogram("weights", values), absl::OkStatus());
    }
    return loss;
  };
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  clock_.AwaitWaiters(2);
  Steps(supervisor, 3);
  EXPECT_THAT(wanted, ElementsAre(true, false, false));
  clock_.Advance(absl::Seconds(120));
  clock_.AwaitWaiters(2);
  Steps(supervisor, 1);
  EXPECT_TRUE(wanted.back());
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
  std::vector<std::string> summaries;
  for (const SummaryEvent& event : ReadEventFiles(store_.files, "model"))
    if (!event.histograms.empty())
      summaries.push_back(absl::StrCat(event.step, " ", event.scalars.back().first, " ", event.scalars.back().second,
                                       " ", event.histograms.front().first));
  EXPECT_THAT(summaries, ElementsAre("1 at 0 weights", "4 at 3 weights"));
}

TEST_F(SupervisorTest, WithoutServicesTheProgramSavesAndSummarisesAtItsOwnTimes) {
  Supervisor supervisor(Environment(chief_), {.logdir = "model"});
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor.SummarizeNextStep()));
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(/*start_standard_services=*/false), absl::OkStatus());
  Steps(supervisor, 2);
  EXPECT_EQ(supervisor.SummarizeNextStep(), absl::OkStatus());
  Steps(supervisor, 2);
  std::string keeps_it;
  store_.loop.CallAt(store_.loop.Now(), [&] { keeps_it = chief_.client->progress().busy(); });
  EXPECT_EQ(supervisor.Save().status(), absl::OkStatus());
  EXPECT_EQ(keeps_it, "saving a checkpoint") << "else the ps would take the chief for one that hangs";
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor.SummarizeNextStep()));
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-4"));
  EXPECT_THAT(Events(), ElementsAre("1: START", "3: loss", "4: CHECKPOINT model/model.ckpt-4", "4: STOP"));
}

TEST_F(SupervisorTest, ServicesCanBeStartedLaterAndOnceOnly) {
  Supervisor supervisor(Environment(chief_), {.logdir = "model"});
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor.StartStandardServices())) << "there is no session";
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(/*start_standard_services=*/false), absl::OkStatus());
  Steps(supervisor, 2);
  EXPECT_THAT(Checkpoints(), IsEmpty());
  EXPECT_THAT(LogOfStartingServices(supervisor), HasSubstr("Starting checkpoint thread."));
  clock_.AwaitWaiters(3);
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-2"));
  Steps(supervisor, 1);
  EXPECT_THAT(LogOfStartingServices(supervisor), Not(HasSubstr("Starting")));
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor.StartStandardServices())) << "it has ended";
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-2"));
  EXPECT_THAT(Events(), ElementsAre("1: START", "2: CHECKPOINT model/model.ckpt-2", "3: STOP", "3: loss"));
}

TEST_F(SupervisorTest, ServicesThatWereStartedWithTheSessionAreNotStartedAgain) {
  Supervisor supervisor(Environment(chief_), {.logdir = "model"});
  EXPECT_EQ(supervisor.ManagedSession([&] {
    EXPECT_THAT(LogOfStartingServices(supervisor), Not(HasSubstr("Starting")));
    return absl::OkStatus();
  }),
            absl::OkStatus());
}

TEST_F(SupervisorTest, ServicesWithoutALogdirAreAWarning) {
  Supervisor supervisor(Environment(chief_), {});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  EXPECT_THAT(LogOfStartingServices(supervisor), HasSubstr("no logdir"));
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
}

// On a device the module has a copy of the values.
TEST_F(SupervisorTest, EachStepShowsItsValuesToTheModel) {
  Supervisor supervisor(Environment(chief_), {});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  Steps(supervisor, 2);
  EXPECT_NE(chief_.source.values(0).front(), 0);
  EXPECT_EQ(chief_.source.shown.front(), chief_.source.values(0));
}

TEST_F(SupervisorTest, ThreadsMaySaveUntilTheyHaveEnded) {
  absl::Status saved;
  std::promise<void> begun;
  Supervisor supervisor(Environment(chief_), {.logdir = "model", .save_summaries_secs = 0, .save_model_secs = 0});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  supervisor.Loop(0, [&] {
    begun.set_value();
    supervisor.WaitForStop();
    return saved = supervisor.Save().status();
  });
  begun.get_future().wait();
  Steps(supervisor, 2);
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
  EXPECT_EQ(saved, absl::OkStatus());
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-2"));
}

TEST_F(SupervisorTest, AThreadThatDoesNotEndIsNamedAfterTheGracePeriod) {
  EXPECT_EQ(SupervisorOptions().stop_grace_secs, 120);
  Mutex mutex;
  CondVar changed;
  bool begun = false, released = false;
  Supervisor supervisor(Environment(chief_), {.stop_grace_secs = 7});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  supervisor.Loop(10, [&] {
    const MutexLock lock(mutex);
    begun = true;
    changed.NotifyAll();
    while (!released) changed.Wait(mutex);
    return absl::OkStatus();
  });
  {
    const MutexLock lock(mutex);
    while (!begun) changed.Wait(mutex);
  }
  std::thread time([&] {
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(7));
  });
  EXPECT_EQ(supervisor.Stop(), absl::FailedPreconditionError("Coordinator stopped with threads still running: loop"));
  time.join();
  EXPECT_TRUE(store_.service(0).MakeView().clients->chief_done());
  const MutexLock lock(mutex);
  released = true;
  changed.NotifyAll();
}

TEST_F(SupervisorTest, ItsConfigIsThatOfASession) {
  const auto prepared = [this](const SessionConfig& config) {
    SessionEnvironment environment = Environment(chief_);
    environment.place = {.task = {"chief", 0}, .device = {}, .ps = {{"ps", 0}}, .peers = {}};
    Supervisor supervisor(environment, {.config = config});
    return supervisor.PrepareOrWaitForSession();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(prepared({.intra_op_parallelism_threads = -1})));
  EXPECT_TRUE(IsWrongConfiguration(prepared({.device_filters = {"/job:ps/task:1"}})));
  EXPECT_EQ(chief_.joined, 0) << "before anything is asked";
  testing::internal::CaptureStderr();
  EXPECT_EQ(prepared({.log_device_placement = true}), absl::OkStatus());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("device placement of chief:0"));
}

TEST_F(SupervisorTest, AWorkerWaitsAndHasNoServices) {
  chief_.StartAsChief();
  Supervisor supervisor(Environment(worker_), {.logdir = "model"});
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  EXPECT_FALSE(supervisor.is_chief());
  Steps(supervisor, 2);
  EXPECT_EQ(supervisor.global_step(), 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor.Save().status()));
  const absl::Status services = supervisor.StartStandardServices();
  EXPECT_TRUE(absl::IsFailedPrecondition(services)) << services;
  EXPECT_THAT(std::string(services.message()), HasSubstr("only the chief may call"));
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
  EXPECT_THAT(Checkpoints(), IsEmpty());
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(SupervisorTest, AWorkerWhoseChiefNeverComesSaysSo) {
  EXPECT_EQ(SupervisorOptions().max_wait_secs, 7200);
  Supervisor supervisor(Environment(worker_), {.max_wait_secs = 60});
  EXPECT_TRUE(absl::IsDeadlineExceeded(supervisor.PrepareOrWaitForSession()));
}

TEST_F(SupervisorTest, AThreadThatCannotSaveTriesAgainSooner) {
  ASSERT_TRUE(store_.files.CreateDirectory("model").ok());
  store_.files.FillAfter(0);
  Supervisor supervisor(Environment(chief_), {.logdir = "model", .save_summaries_secs = 0});
  testing::internal::CaptureStderr();
  ASSERT_EQ(supervisor.PrepareOrWaitForSession(), absl::OkStatus());
  clock_.AwaitWaiters(1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("training goes on, the next attempt is in 5s"));
  EXPECT_THAT(Checkpoints(), IsEmpty());
  store_.files.Unfill();
  Steps(supervisor, 2);
  clock_.Advance(absl::Seconds(5));
  clock_.AwaitWaiters(1);
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-2"));
  EXPECT_EQ(supervisor.Stop(), absl::OkStatus());
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

TEST_F(SupervisorTest, APsThatIsGoneAtTheStopIsNoCleanEnd) {
  Supervisor supervisor(Environment(chief_), {});
  EXPECT_TRUE(IsInterrupted(
      supervisor.ManagedSession([] { return InterruptedError(absl::UnavailableError("no answer of ps:0")); })));
  Supervisor ended(Environment(worker_), {});
  EXPECT_EQ(ended.ManagedSession([] { return absl::CancelledError("training has ended"); }), absl::OkStatus());
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
}  // namespace muster::supervisor_test
