// Sessions whose ps lose the model, or whose chief is told to load another checkpoint.
#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/store/calls/shutdown_wait.h"
#include "muster/store/service/store_status.h"
#include "muster/summary/event_file_reader.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/session/session.h"
#include "muster/train/testing/training_process.h"

namespace muster::session_recovery_test {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kTasks = {"chief:0", "worker:0"};

// Counts how often a session was created.
class CreationCounter final : public SessionHook {
 public:
  absl::Status AfterCreateSession(const SessionContext&) override {
    ++created;
    return absl::OkStatus();
  }
  int created = 0;
};

class RecoveryTest : public ::testing::TestWithParam<UpdateWay> {
 protected:
  RecoveryTest()
      : chief_session_(chief_.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 2}, {chief_hook_})),
        worker_session_(worker_.MakeSession({}, {worker_hook_})) {
    EXPECT_EQ(chief_session_.Start(), absl::OkStatus());
    EXPECT_EQ(worker_session_.Start(), absl::OkStatus());
  }
  void Steps(Session& session, int steps) {
    for (int i = 0; i < steps; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  }

  SimulatedStore store_{2, kTasks, {}, nullptr, GetParam().direct()};
  TrainingProcess chief_{store_, "chief:0", {.files = &store_.files, .way = GetParam()}};
  TrainingProcess worker_{store_, "worker:0", {.way = GetParam()}};
  std::shared_ptr<CreationCounter> chief_hook_ = std::make_shared<CreationCounter>();
  std::shared_ptr<CreationCounter> worker_hook_ = std::make_shared<CreationCounter>();
  Session chief_session_;
  Session worker_session_;
};

// A pipelined worker hears of everything a step later: session_pipelined_test.cc.
INSTANTIATE_TEST_SUITE_P(Ways, RecoveryTest, ::testing::ValuesIn(Without(kSimulatedWays, {"ServerPipelined"})),
                         NameOfWay);

TEST_P(RecoveryTest, TheChiefLoadsTheLastCheckpointIntoAPsThatCameBackEmpty) {
  Steps(chief_session_, 5);  // saves at 0, 2 and 4
  store_.LosePs(1);
  store_.StartPs(1);
  Steps(chief_session_, 1);
  EXPECT_EQ(chief_session_.global_step(), 5);
  EXPECT_EQ(chief_hook_->created, 2);
  Steps(worker_session_, 1);
  EXPECT_EQ(worker_session_.global_step(), 6);
  EXPECT_EQ(worker_hook_->created, 2);
  EXPECT_EQ(chief_.source.values(0).size(), worker_.source.values(0).size());
}

TEST_P(RecoveryTest, AWorkerThatFindsOutFirstWaitsForTheChief) {
  Steps(chief_session_, 3);
  store_.LosePs(0);
  store_.StartPs(0);
  // The chief's next step comes while the worker waits.
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(2), [&] { Steps(chief_session_, 1); });
  Steps(worker_session_, 1);
  EXPECT_EQ(worker_session_.global_step(), 4);
}

TEST_P(RecoveryTest, WithoutACheckpointItSaysWhatIsMissing) {
  SimulatedStore store(1, kTasks, {}, nullptr, GetParam().direct());
  TrainingProcess chief(store, "chief:0", {.way = GetParam()});
  Session session = chief.MakeSession();
  ASSERT_EQ(session.Start(), absl::OkStatus());
  store.LosePs(0);
  store.StartPs(0);
  const absl::Status status = session.Run();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("give the session a checkpoint_dir"));
}

TEST_P(RecoveryTest, RestoreTakesEverybodyBack) {
  Steps(chief_session_, 2);
  const std::vector<float> then = chief_.source.values(0);
  Steps(worker_session_, 4);
  std::string keeps_it;
  store_.loop.CallAt(store_.loop.Now(), [&] { keeps_it = chief_.client->progress().busy(); });
  ASSERT_EQ(chief_session_.Restore("model/model.ckpt-2"), absl::OkStatus());
  EXPECT_EQ(keeps_it, "loading a checkpoint") << "else the ps would take the chief for one that hangs";
  EXPECT_EQ(chief_session_.global_step(), 2);
  EXPECT_EQ(chief_.source.values(0), then);
  Steps(worker_session_, 1);
  EXPECT_EQ(worker_session_.global_step(), 3);
  EXPECT_TRUE(absl::IsFailedPrecondition(worker_session_.Restore("model/model.ckpt-2")));
}

// A chief that is stopped after a ps has gone.
class InterruptedTest : public RecoveryTest {
 protected:
  void LosePsAndStop(int ps) {
    store2_.KillPs(ps);
    process_.stop = true;
  }
  std::string StateOnPs(int ps) {
    const nlohmann::json status = nlohmann::json::parse(StatusJson(store2_.service(ps).MakeView()));
    return status.at("clients").at(0).at("state");
  }

  SimulatedStore store2_{2, {"chief:0"}, {}, nullptr, GetParam().direct()};
  TrainingProcess process_{store2_, "chief:0", {.files = &store2_.files, .way = GetParam()}};
};

// With an update under way: session_pipelined_test.cc.
INSTANTIATE_TEST_SUITE_P(Ways, InterruptedTest, ::testing::ValuesIn(kSimulatedWays), NameOfWay);

TEST_P(InterruptedTest, InTheMiddleOfTheStart) {
  SessionEnvironment environment = process_.Environment();
  environment.on_joined = [this] { LosePsAndStop(1); };
  Session session(environment, {}, {});
  const absl::Status status = session.Start();
  EXPECT_TRUE(IsInterrupted(status)) << status;
  EXPECT_EQ(StateOnPs(0), "done");
}

TEST_P(InterruptedTest, AtTheEndKeepsItsSummaries) {
  Session session =
      process_.MakeSession({.checkpoint_dir = "model", .summary_dir = "summaries", .save_summaries_steps = 1});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  Steps(session, 2);
  LosePsAndStop(0);
  const absl::Status status = session.Close();
  EXPECT_TRUE(IsInterrupted(status)) << status;
  EXPECT_EQ(StateOnPs(1), "done");
  const std::vector<SummaryEvent> events = ReadEventFiles(store2_.files, "summaries");
  ASSERT_FALSE(events.empty());
  EXPECT_THAT(events.back().ToString(), HasSubstr("2: loss="));
}

TEST_P(RecoveryTest, TheInputGoesOnWhereItIs) {
  SimulatedStore store(1, kTasks, {}, nullptr, GetParam().direct());
  TrainingProcess chief(store, "chief:0", {.files = &store.files, .way = GetParam()});
  int restored = 0;
  SessionOptions options{.checkpoint_dir = "model"};
  options.saveables.push_back({"input", [] { return "7"; },
                               [&restored](const std::string&) {
                                 ++restored;
                                 return absl::InvalidArgumentError("batches have been drawn");
                               }});
  Session session = chief.MakeSession(options);
  ASSERT_EQ(session.Start(), absl::OkStatus());
  Steps(session, 2);
  EXPECT_EQ(session.Restore("model/model.ckpt-0"), absl::OkStatus());
  store.LosePs(0);
  store.StartPs(0);
  Steps(session, 1);
  EXPECT_EQ(restored, 0);
}

TEST_P(RecoveryTest, AfterARestoreCheckpointsAreSavedAsFromAFirstStep) {
  Steps(chief_session_, 8);  // saves at 0, 2, … 8
  ASSERT_EQ(chief_session_.Restore("model/model.ckpt-2"), absl::OkStatus());
  Steps(chief_session_, 1);
  EXPECT_EQ(chief_session_.last_checkpoint(), "model/model.ckpt-3") << "not only at 10";
  Steps(chief_session_, 2);
  EXPECT_EQ(chief_session_.last_checkpoint(), "model/model.ckpt-5");
}

TEST_P(RecoveryTest, ARestoreThatCannotBeLeavesEverythingAsItWas) {
  Steps(chief_session_, 3);
  EXPECT_FALSE(chief_session_.Restore("model/model.ckpt-77").ok());
  Steps(chief_session_, 1);
  EXPECT_EQ(chief_session_.global_step(), 4);
  EXPECT_EQ(chief_hook_->created, 1);
}

TEST_P(RecoveryTest, AnyoneMayAskTheChiefToLoad) {
  Steps(chief_session_, 3);
  const LoadCommand command(store_, "model/model.ckpt-2");
  EXPECT_FALSE(command.answer().has_value());
  Steps(chief_session_, 1);
  store_.Pass(absl::Milliseconds(1));
  ASSERT_TRUE(command.answer().has_value());
  ASSERT_TRUE(command.answer()->ok()) << command.answer()->status();
  EXPECT_EQ((*command.answer())->global_step, 2);
  EXPECT_EQ(chief_session_.global_step(), 2);
}

TEST_P(RecoveryTest, WhoAsksForWhatIsNotThereIsToldAndTrainingGoesOn) {
  Steps(chief_session_, 3);
  const LoadCommand command(store_, "model/model.ckpt-99");
  Steps(chief_session_, 1);
  store_.Pass(absl::Milliseconds(1));
  ASSERT_TRUE(command.answer().has_value());
  EXPECT_FALSE(command.answer()->ok());
  EXPECT_THAT(std::string(command.answer()->status().message()), HasSubstr("model.ckpt-99"));
  EXPECT_EQ(chief_session_.global_step(), 4);
}

TEST_P(RecoveryTest, WithoutALivingChiefNobodyCanLoad) {
  ASSERT_EQ(chief_session_.Close(), absl::OkStatus());
  const LoadCommand command(store_, "model/model.ckpt-0");
  ASSERT_TRUE(command.answer().has_value());
  EXPECT_TRUE(absl::IsUnavailable(command.answer()->status())) << command.answer()->status();
}

}  // namespace
}  // namespace muster::session_recovery_test
