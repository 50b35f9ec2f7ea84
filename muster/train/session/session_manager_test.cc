#include "muster/train/session/session_manager.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/wrong_configuration.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/train/testing/training_process.h"

namespace muster::session_manager_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

const std::vector<std::string> kTasks = {"chief:0", "worker:0"};

class SessionManagerTest : public ::testing::Test {
 protected:
  // Records its calls; `init` and `init_fn` set the first variable.
  std::shared_ptr<Scaffold> NotingScaffold(TrainingProcess& process) {
    const auto note = [this](const char* what) { story_.push_back(what); };
    return std::make_shared<Scaffold>(ScaffoldOptions{
        .init = [note, &process] { return note("init"), process.source.values(0)[0] = 5, absl::OkStatus(); },
        .init_fn = [note, &process] { return note("init_fn"), process.source.values(0)[0] *= 3, absl::OkStatus(); },
        .local_init = [note] { return note("local_init"), absl::OkStatus(); },
        .ready_for_local_init = [note] { return note("ready_for_local_init?"), std::vector<std::string>(); },
        .ready = [note] { return note("ready?"), std::vector<std::string>(); }});
  }
  // Records what is restored.
  Saveable Position() {
    return {"position", [] { return std::string("17"); },
            [this](const std::string& state) { return story_.push_back(state), absl::OkStatus(); }};
  }
  std::vector<std::string> TakeStory() { return std::exchange(story_, {}); }
  SessionManager Manager(TrainingProcess& process, SessionManagerOptions options) {
    return SessionManager(process.Environment(), std::move(options));
  }

  std::vector<std::string> story_;
  SimulatedStore store_{1, kTasks, {.lease = absl::Hours(100)}};
  TrainingProcess chief_{store_, "chief:0"};
  TrainingProcess worker_{store_, "worker:0"};
};

TEST_F(SessionManagerTest, PrepareInitialisesWhereThereIsNothing) {
  SessionManager chief = Manager(chief_, {.is_chief = true, .scaffold = NotingScaffold(chief_)});
  const auto step = chief.PrepareSession().value();
  EXPECT_EQ(step, 0);
  EXPECT_THAT(TakeStory(), ElementsAre("init", "init_fn", "ready_for_local_init?", "local_init", "ready?"));
  SessionManager worker = Manager(worker_, {.scaffold = NotingScaffold(worker_)});
  ASSERT_EQ(worker.WaitForSession(absl::Seconds(1)).status(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("ready_for_local_init?", "local_init", "ready?"));
  EXPECT_EQ(worker_.source.values(0)[0], 15) << "the values that init and init_fn made";
}

TEST_F(SessionManagerTest, PrepareRestoresInsteadWhereThereIsACheckpoint) {
  const SessionManagerOptions options = {.is_chief = true, .checkpoint_dir = "model"};
  SessionManager before = Manager(chief_, options);
  ASSERT_EQ(before.PrepareSession().status(), absl::OkStatus());
  for (int i = 0; i < 4; ++i) chief_.Step();
  ASSERT_EQ(before.saver()->Save().status(), absl::OkStatus());
  const std::vector<float> then = chief_.source.values(0);

  SimulatedStore store(1, kTasks);
  TrainingProcess again(store, "chief:0", {.files = &store_.files});
  store.KillPs(0);
  store.StartPs(0, &store_.files);
  SessionManagerOptions noting = options;
  noting.scaffold = NotingScaffold(again);
  SessionManager chief = Manager(again, noting);
  const auto step = chief.PrepareSession().value();
  EXPECT_EQ(step, 4);
  EXPECT_EQ(again.source.values(0), then);
  EXPECT_THAT(TakeStory(), ElementsAre("ready_for_local_init?", "local_init", "ready?"));
}

// A new job, with a disk on which an earlier one has saved at steps 2 and 4.
class NamedCheckpointTest : public SessionManagerTest {
 protected:
  NamedCheckpointTest() {
    SessionManager before = Manager(chief_, {.is_chief = true, .checkpoint_dir = "model", .saveables = {Position()}});
    EXPECT_EQ(before.PrepareSession().status(), absl::OkStatus());
    for (const char* path : {"model/model.ckpt-2", "model/model.ckpt-4"}) {
      for (int i = 0; i < 2; ++i) chief_.Step();
      EXPECT_EQ(*before.saver()->Save(), path);
      if (at_2_.empty()) at_2_ = chief_.source.values(0);
    }
    new_store_.KillPs(0);
    new_store_.StartPs(0, &store_.files);
  }
  SessionManager NewChief(const std::string& path) {
    return Manager(new_chief_, {.is_chief = true,
                                .checkpoint_filename_with_path = path,
                                .scaffold = NotingScaffold(new_chief_),
                                .saveables = {Position()}});
  }

  std::vector<float> at_2_;  // the first variable's values
  SimulatedStore new_store_{1, kTasks, {.lease = absl::Hours(100)}};
  TrainingProcess new_chief_{new_store_, "chief:0", {.files = &store_.files}};
};

TEST_F(NamedCheckpointTest, ItIsRestoredAndNotTheNewest) {
  SessionManager chief = NewChief("model/model.ckpt-2");
  const auto step = chief.PrepareSession().value();
  EXPECT_EQ(step, 2);
  EXPECT_EQ(new_chief_.source.values(0), at_2_);
  EXPECT_THAT(TakeStory(), ElementsAre("17", "ready_for_local_init?", "local_init", "ready?"));
  EXPECT_EQ(chief.saver(), nullptr) << "without a checkpoint_dir nothing is saved";
}

TEST_F(NamedCheckpointTest, ItMayBeNamedByItsManifest) {
  EXPECT_EQ(NewChief("model/model.ckpt-2.manifest.json").PrepareSession().value_or(-1), 2);
}

TEST_F(NamedCheckpointTest, ARecoveryGoesBackToItAndLeavesTheInputWhereItIs) {
  SessionManager chief = NewChief("model/model.ckpt-2");
  ASSERT_EQ(chief.PrepareSession().status(), absl::OkStatus());
  new_chief_.Step();
  new_store_.LosePs(0);
  new_store_.StartPs(0, &store_.files);
  TakeStory();
  chief.LoseModel(absl::AbortedError("ps:0 has lost the model"));
  const auto recovered = chief.RecoverSession().value();
  EXPECT_EQ(recovered.value_or(-1), 2);
  EXPECT_THAT(TakeStory(), ElementsAre("ready_for_local_init?", "local_init", "ready?"));
}

TEST_F(NamedCheckpointTest, WhatThePsHoldIsKept) {
  ASSERT_EQ(NewChief("model/model.ckpt-2").PrepareSession().status(), absl::OkStatus());
  new_chief_.Step();
  EXPECT_EQ(NewChief("model/model.ckpt-2").PrepareSession().value_or(-1), 3);
}

TEST_F(NamedCheckpointTest, OneThatIsNotThereIsAnErrorAndNothingIsInitialised) {
  const absl::Status status = NewChief("model/model.ckpt-3").PrepareSession().status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_TRUE(IsWrongConfiguration(status)) << "exit code 2";
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("checkpoint_filename_with_path is 'model/model.ckpt-3'"),
                                                   HasSubstr("no file model/model.ckpt-3.manifest.json")));
  EXPECT_THAT(TakeStory(), IsEmpty());
}

TEST_F(NamedCheckpointTest, TogetherWithADirectoryItIsAnError) {
  SessionManager chief = Manager(
      new_chief_, {.is_chief = true, .checkpoint_dir = "model", .checkpoint_filename_with_path = "model/model.ckpt-2"});
  const absl::Status status = chief.PrepareSession().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(IsWrongConfiguration(status));
}

TEST_F(SessionManagerTest, AnErrorOfAnyPieceIsTheErrorOfTheStart) {
  using Piece = std::function<absl::Status()> ScaffoldOptions::*;
  for (const Piece piece : {&ScaffoldOptions::init, &ScaffoldOptions::init_fn, &ScaffoldOptions::local_init}) {
    SimulatedStore store(1, kTasks);
    TrainingProcess process(store, "chief:0");
    ScaffoldOptions options;
    options.*piece = [] { return absl::DataLossError("no such file"); };
    SessionManager chief = Manager(process, {.is_chief = true, .scaffold = std::make_shared<Scaffold>(options)});
    EXPECT_EQ(chief.PrepareSession().status(), absl::DataLossError("no such file"));
  }
}

TEST_F(SessionManagerTest, AChiefWhoseModelIsNotReadySaysWhatIsMissing) {
  const auto missing = [] { return std::vector<std::string>{"vocabulary", "cache"}; };
  for (const bool before_local_init : {true, false}) {
    SimulatedStore store(1, kTasks);
    TrainingProcess process(store, "chief:0");
    ScaffoldOptions options;
    (before_local_init ? options.ready_for_local_init : options.ready) = missing;
    options.local_init = [this] { return story_.push_back("local_init"), absl::OkStatus(); };
    SessionManager chief = Manager(process, {.is_chief = true, .scaffold = std::make_shared<Scaffold>(options)});
    const absl::Status status = chief.PrepareSession().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(before_local_init ? "did not make model ready for local_init" : "make model ready:"),
                      HasSubstr("vocabulary, cache")));
    EXPECT_EQ(TakeStory().empty(), before_local_init);
  }
}

TEST_F(SessionManagerTest, AWorkerAsksAgainUntilItIsReady) {
  chief_.StartAsChief();
  int asked = 0;
  ScaffoldOptions options;
  options.ready = [&] { return ++asked < 4 ? std::vector<std::string>{"cache"} : std::vector<std::string>(); };
  SessionManager worker = Manager(worker_, {.scaffold = std::make_shared<Scaffold>(options)});
  EXPECT_EQ(worker.WaitForSession(absl::Seconds(30)).status(), absl::OkStatus());
  EXPECT_EQ(asked, 4);
}

TEST_F(SessionManagerTest, WaitingHasItsLimitWhoeverIsMissing) {
  const auto wait = [this](ScaffoldOptions options) {
    SessionManager worker = Manager(worker_, {.scaffold = std::make_shared<Scaffold>(std::move(options))});
    const absl::Time begin = store_.loop.Now();
    const absl::Status status = worker.WaitForSession(absl::Seconds(40)).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("Session was not ready after waiting 40 secs"));
    EXPECT_EQ(store_.loop.Now() - begin, absl::Seconds(40));
    return std::string(status.message());
  };
  EXPECT_THAT(wait({}), HasSubstr("the chief has not initialised the model"));
  chief_.StartAsChief();
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  EXPECT_THAT(wait({.ready = [] { return std::vector<std::string>{"cache"}; }}), HasSubstr("cache"));
  const std::string log = ::testing::internal::GetCapturedStderr();
  for (const char* since : {"10s", "20s"})
    EXPECT_THAT(log, HasSubstr(absl::StrCat("waiting since ", since, " for the model to be ready: not ready: cache")));
}

TEST_F(SessionManagerTest, RecoverInitialisesNothing) {
  SessionManager chief =
      Manager(chief_, {.is_chief = true, .checkpoint_dir = "model", .scaffold = NotingScaffold(chief_)});
  const auto nothing = chief.RecoverSession().value();
  EXPECT_FALSE(nothing.has_value());
  EXPECT_THAT(TakeStory(), IsEmpty());
  ASSERT_EQ(chief.PrepareSession().status(), absl::OkStatus());
  chief_.Step();
  ASSERT_EQ(chief.saver()->Save().status(), absl::OkStatus());
  store_.LosePs(0);
  store_.StartPs(0);
  const auto recovered = chief.RecoverSession().value();
  EXPECT_EQ(recovered, 1);
}

TEST_F(SessionManagerTest, AScaffoldCanBeChangedUntilItIsFinalized) {
  Scaffold scaffold;
  EXPECT_EQ(
      scaffold.Change([](ScaffoldOptions& options) { options.ready = [] { return std::vector<std::string>(); }; }),
      absl::OkStatus());
  EXPECT_TRUE(scaffold.options().ready != nullptr);
  scaffold.Finalize();
  scaffold.Finalize();
  EXPECT_EQ(scaffold.Change([](ScaffoldOptions& options) { options.ready = nullptr; }),
            absl::FailedPreconditionError("Graph is finalized and cannot be modified."));
  EXPECT_TRUE(scaffold.options().ready != nullptr);
}

TEST_F(SessionManagerTest, TheScaffoldsSaverKeepsItsOwnThings) {
  const auto scaffold = std::make_shared<Scaffold>(
      ScaffoldOptions{.saver = ScaffoldSaver{.keep_checkpoint_max = 1, .saveables = {Position()}}});
  SessionManager chief = Manager(chief_, {.is_chief = true, .checkpoint_dir = "model", .scaffold = scaffold});
  ASSERT_EQ(chief.PrepareSession().status(), absl::OkStatus());
  for (int i = 0; i < 2; ++i) {
    chief_.Step();
    ASSERT_EQ(chief.saver()->Save().status(), absl::OkStatus());
  }
  EXPECT_THAT(*ListCheckpoints(store_.files, "model"), ElementsAre("model.ckpt-2"));
  ASSERT_EQ(chief.saver()->RestoreLatest().status(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("17"));
}

}  // namespace
}  // namespace muster::session_manager_test
