#include <gmock/gmock.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/client/store_client.h"
#include "muster/store/service/passing_handler.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/testing/hook_driver.h"
#include "muster/train/testing/training_process.h"

namespace muster::checkpoint_saver_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty,
    ::testing::StartsWith;

// Records its calls, with the checkpoints that exist then.
class Listener final : public CheckpointSaverListener {
 public:
  Listener(std::string name, FileSystem& files, std::vector<std::string>& story)
      : name_(std::move(name)), files_(files), story_(story) {}

  absl::Status Begin() override { return Note("begin"); }
  absl::Status BeforeSave(const SessionContext&, int64_t step) override { return Note(absl::StrCat("before ", step)); }
  absl::StatusOr<AfterSaving> AfterSave(const SessionContext& session, int64_t step) override {
    busy.insert(session.client->progress().busy());
    const absl::Status noted = Note(absl::StrCat("after ", step));
    if (!noted.ok()) return noted;
    return step == stops_at ? AfterSaving::kStop : AfterSaving::kContinue;
  }
  absl::Status End(const SessionContext&, int64_t step) override { return Note(absl::StrCat("end ", step)); }

  int64_t stops_at = -1;
  std::set<std::string> busy;  // what kept the worker from training, after each save
  std::string fails_at;
  absl::StatusCode fails_with = absl::StatusCode::kInternal;

 private:
  absl::Status Note(const std::string& what) {
    const auto checkpoints = ListCheckpoints(files_, "model").value_or(std::vector<std::string>());
    story_.push_back(absl::StrCat(name_, " ", what, " of ", checkpoints.size()));
    return what == fails_at ? absl::Status(fails_with, absl::StrCat("failed ", what)) : absl::OkStatus();
  }

  const std::string name_;
  FileSystem& files_;
  std::vector<std::string>& story_;
};

class CheckpointSaverListenerTest : public ::testing::Test {
 protected:
  Session MakeSession(std::vector<std::shared_ptr<CheckpointSaverListener>> listeners) {
    return process_.MakeSession(
        {.checkpoint_dir = "model",
         .save_checkpoint_secs = 0,
         .chief_only_hooks = {CheckpointSaver({.save_steps = 2, .listeners = std::move(listeners)})}});
  }

  std::vector<std::string> story_;
  SimulatedStore store_{1, {"chief:0"}};
  TrainingProcess process_{store_, "chief:0", {.files = &store_.files}};
  std::shared_ptr<Listener> a_ = std::make_shared<Listener>("a", store_.files, story_);
  std::shared_ptr<Listener> b_ = std::make_shared<Listener>("b", store_.files, story_);
};

TEST_F(CheckpointSaverListenerTest, HearOfEachSaveBeforeAndAfterIt) {
  Session session = MakeSession({a_, b_});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  EXPECT_THAT(std::exchange(story_, {}), ElementsAre("a begin of 0", "b begin of 0", "a before 0 of 0",
                                                     "b before 0 of 0", "a after 0 of 1", "b after 0 of 1"));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_THAT(std::exchange(story_, {}),
              ElementsAre("a before 2 of 1", "b before 2 of 1", "a after 2 of 2", "b after 2 of 2"));
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(story_, ElementsAre("a before 3 of 2", "b before 3 of 2", "a after 3 of 3", "b after 3 of 3",
                                  "a end 3 of 3", "b end 3 of 3"));
}

// Else the ps would take a chief that saves for one that hangs.
TEST_F(CheckpointSaverListenerTest, ThePsIsToldThatTheChiefSaves) {
  Session session = MakeSession({a_});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(a_->busy, ElementsAre("saving a checkpoint"));
  EXPECT_EQ(process_.client->progress().busy(), "") << "it trains again";
}

TEST_F(CheckpointSaverListenerTest, MayAskForAStopButNotAtTheCreation) {
  a_->stops_at = 0;
  Session first = MakeSession({a_, b_});
  ASSERT_EQ(first.Start(), absl::OkStatus());
  EXPECT_FALSE(first.ShouldStop()) << "like TensorFlow, which ignores what listeners return at the first save";
  a_->stops_at = 2;
  ASSERT_EQ(first.Run(), absl::OkStatus());
  EXPECT_FALSE(first.ShouldStop());
  story_.clear();
  ASSERT_EQ(first.Run(), absl::OkStatus());
  EXPECT_TRUE(first.ShouldStop());
  EXPECT_THAT(story_, ElementsAre("a before 2 of 1", "b before 2 of 1", "a after 2 of 2", "b after 2 of 2"))
      << "the other listeners are still told of the save";
  story_.clear();
  ASSERT_EQ(first.Close(), absl::OkStatus());
  EXPECT_THAT(story_, ElementsAre("a end 2 of 2", "b end 2 of 2")) << "the last step is saved already";
}

TEST_F(CheckpointSaverListenerTest, AnErrorIsTheRuns) {
  b_->fails_at = "before 2";
  Session session = MakeSession({a_, b_});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.Run(), absl::InternalError("failed before 2"));
  EXPECT_THAT(ListCheckpoints(store_.files, "model").value_or(std::vector<std::string>()), ElementsAre("model.ckpt-0"));
}

// Unlike the saver's OutOfRange, which means "not now".
TEST_F(CheckpointSaverListenerTest, TheEndOfAListenersInputIsACleanEnd) {
  a_->fails_at = "after 2";
  a_->fails_with = absl::StatusCode::kOutOfRange;
  Session session = MakeSession({a_});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.Run(), absl::OkStatus());
  EXPECT_TRUE(session.ShouldStop());
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

// A store whose ps refuses a given number of checkpoint cuts.
class BusyStore : public SimulatedStore {
 public:
  explicit BusyStore(int& cuts) : SimulatedStore(1, {"chief:0"}) {
    KillPs(0);
    wrap = [&cuts](StoreService& service) { return std::make_unique<BusyPs>(service, cuts); };
    StartPs(0);
  }

 private:
  class BusyPs final : public PassingHandler {
   public:
    BusyPs(StoreService& inner, int& cuts) : PassingHandler(inner), cuts_(cuts) {}
    void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
      if (static_cast<StoreMethod>(request.method) == StoreMethod::kHold && cuts_ > 0) {
        --cuts_;
        return responder.Fail(absl::OutOfRangeError("not now"));
      }
      PassingHandler::Handle(request, std::move(bulk), std::move(responder));
    }

   private:
    int& cuts_;
  };
};

class BusyPsTest : public ::testing::Test {
 protected:
  // How often Saver itself attempts one save.
  static constexpr int kAttempts = 3;

  std::vector<std::string> Checkpoints() {
    return ListCheckpoints(store_.files, "model").value_or(std::vector<std::string>());
  }

  int cuts_ = 0;  // how many cuts the ps refuses from now on
  std::vector<std::string> story_;
  BusyStore store_{cuts_};
  TrainingProcess process_{store_, "chief:0", {.files = &store_.files}};
  Session session_ = process_.MakeSession(
      {.checkpoint_dir = "model",
       .save_checkpoint_secs = 0,
       .chief_only_hooks = {
           CheckpointSaver({.save_steps = 2, .listeners = {std::make_shared<Listener>("a", store_.files, story_)}})}});
};

TEST_F(BusyPsTest, WhatCannotBeSavedIsTriedAgainAtTheNextStep) {
  ASSERT_EQ(session_.Start(), absl::OkStatus());
  ASSERT_EQ(session_.Run(), absl::OkStatus());
  story_.clear();
  cuts_ = 2 * kAttempts;
  EXPECT_THAT(Logged([this] { EXPECT_EQ(session_.Run(), absl::OkStatus()); }),
              Contains(StartsWith("no checkpoint at step 2: ")));
  EXPECT_EQ(session_.Run(), absl::OkStatus());
  EXPECT_EQ(cuts_, 0);
  EXPECT_EQ(session_.Run(), absl::OkStatus());
  EXPECT_THAT(story_, ElementsAre("a before 2 of 1", "a before 3 of 1", "a before 4 of 1", "a after 4 of 2"))
      << "no AfterSave of what wasn't saved";
  EXPECT_EQ(session_.Run(), absl::OkStatus());
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-4")) << "the next is due two steps later";
  EXPECT_EQ(session_.Close(), absl::OkStatus());
}

TEST_F(BusyPsTest, TheFirstSaveIsTriedAgainAtTheFirstStep) {
  cuts_ = kAttempts;
  ASSERT_EQ(session_.Start(), absl::OkStatus());
  EXPECT_THAT(story_, ElementsAre("a begin of 0", "a before 0 of 0"));
  story_.clear();
  EXPECT_EQ(session_.Run(), absl::OkStatus());
  EXPECT_THAT(story_, ElementsAre("a before 1 of 0", "a after 1 of 1"));
  EXPECT_EQ(session_.Close(), absl::OkStatus());
}

TEST_F(BusyPsTest, TheLastSaveIsTriedAgainWithLongerAndLongerPauses) {
  ASSERT_EQ(session_.Start(), absl::OkStatus());
  ASSERT_EQ(session_.Run(), absl::OkStatus());
  story_.clear();
  cuts_ = 4 * kAttempts;
  const absl::Time before = store_.loop.Now();
  EXPECT_EQ(session_.Close(), absl::OkStatus());
  EXPECT_EQ(cuts_, 0);
  EXPECT_GE(store_.loop.Now() - before, absl::Seconds(1 + 2 + 4 + 8));
  EXPECT_THAT(story_, ElementsAre("a before 1 of 1", "a before 1 of 1", "a before 1 of 1", "a before 1 of 1",
                                  "a before 1 of 1", "a after 1 of 2", "a end 1 of 2"));
}

// The save is worth a retry, and the exit code says so.
TEST_F(BusyPsTest, ALastStepThatCannotBeSavedIsUnavailable) {
  ASSERT_EQ(session_.Start(), absl::OkStatus());
  ASSERT_EQ(session_.Run(), absl::OkStatus());
  cuts_ = 1000;
  const absl::Time before = store_.loop.Now();
  const absl::Status closed = session_.Close();
  EXPECT_LE(store_.loop.Now() - before, absl::Seconds(61));
  EXPECT_TRUE(absl::IsUnavailable(closed)) << closed;
  EXPECT_THAT(std::string(closed.message()), StartsWith("the last checkpoint could not be saved in 1m: "));
  EXPECT_THAT(story_.back(), "a end 1 of 1") << "the listener's end comes all the same";
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0"));
}

class DiskTroubleTest : public ::testing::Test {
 protected:
  Session MakeSession(CheckpointSaverOptions options) {
    return process_.MakeSession({.checkpoint_dir = "model",
                                 .save_checkpoint_secs = 0,
                                 .save_summaries_steps = 0,
                                 .log_step_count_steps = 0,
                                 .chief_only_hooks = {CheckpointSaver(options)}});
  }
  std::vector<std::string> Checkpoints() {
    return ListCheckpoints(store_.files, "model").value_or(std::vector<std::string>());
  }
  // Runs a step `after` from now, and returns its warnings.
  std::vector<std::string> RunAfter(Session& session, absl::Duration after) {
    store_.Pass(after);
    return Logged([&] { EXPECT_EQ(session.Run(), absl::OkStatus()); });
  }

  SimulatedStore store_{1, {"chief:0"}, {.lease = absl::Hours(100)}};
  TrainingProcess process_{store_, "chief:0", {.files = &store_.files}};
};

TEST_F(DiskTroubleTest, TrainingGoesOnAndTheNextAttemptComesSoonerThanTheInterval) {
  Session session = MakeSession({.save_interval = absl::Seconds(600)});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  store_.files.FillAfter(0);
  EXPECT_THAT(RunAfter(session, absl::Seconds(601)),
              Contains(AllOf(StartsWith("no checkpoint at step 1: "), HasSubstr("no space left on device"),
                             HasSubstr("the next attempt is in 5s; the newest is model/model.ckpt-0"))));
  EXPECT_THAT(RunAfter(session, absl::Seconds(4)), IsEmpty()) << "it isn't time yet";
  EXPECT_THAT(RunAfter(session, absl::Seconds(1)), Contains(HasSubstr("the next attempt is in 10s")));
  EXPECT_THAT(RunAfter(session, absl::Seconds(10)), Contains(HasSubstr("the next attempt is in 20s")));
  store_.files.Unfill();
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0")) << "the older one stays";
  RunAfter(session, absl::Seconds(20));
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-5"));
  RunAfter(session, absl::Seconds(60));
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-5")) << "the next is due at its interval";
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

TEST_F(DiskTroubleTest, TheMetricsSayHowOldTheNewestIsAndWhyTheLastSaveFailed) {
  TrainingMetrics metrics;
  SessionEnvironment environment = process_.Environment();
  environment.metrics = &metrics;
  Session session(std::move(environment), {.checkpoint_dir = "model", .save_checkpoint_secs = 10}, {});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  RunAfter(session, absl::Seconds(1));
  const double saved_at = metrics.checkpoint_saved_at.value();
  EXPECT_GT(saved_at, 0);
  EXPECT_EQ(metrics.checkpoint_failure.Get(), "");
  store_.files.FillAfter(0);
  RunAfter(session, absl::Seconds(10));
  RunAfter(session, absl::Seconds(1));
  EXPECT_EQ(metrics.checkpoint_failures.value(), 1);
  EXPECT_THAT(metrics.checkpoint_failure.Get(), HasSubstr("no space left on device"));
  EXPECT_EQ(metrics.checkpoint_saved_at.value(), saved_at);
  store_.files.Unfill();
  RunAfter(session, absl::Seconds(5));
  RunAfter(session, absl::Seconds(1));
  EXPECT_EQ(metrics.checkpoint_failure.Get(), "");
  EXPECT_GT(metrics.checkpoint_saved_at.value(), saved_at);
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

TEST_F(DiskTroubleTest, APauseIsNeverLongerThanTheInterval) {
  Session session = MakeSession({.save_interval = absl::Seconds(8)});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  store_.files.FillAfter(0);
  EXPECT_THAT(RunAfter(session, absl::Seconds(9)), Contains(HasSubstr("the next attempt is in 5s")));
  EXPECT_THAT(RunAfter(session, absl::Seconds(5)), Contains(HasSubstr("the next attempt is in 8s")));
  EXPECT_THAT(RunAfter(session, absl::Seconds(8)), Contains(HasSubstr("the next attempt is in 8s")));
  store_.files.Unfill();
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

TEST_F(DiskTroubleTest, OnlyAFirstSaveThatNeverWorksIsAnErrorAtTheStart) {
  {
    Session session = MakeSession({.save_steps = 1});
    ASSERT_TRUE(store_.files.CreateDirectory("model").ok());
    store_.files.FillAfter(0);
    EXPECT_EQ(session.Start(), absl::OkStatus()) << "a full disk may have room later";
    store_.files.Unfill();
    RunAfter(session, absl::Seconds(5));
    EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-1"));
    store_.files.SetReadOnly(true);
    EXPECT_THAT(RunAfter(session, absl::Seconds(5)), Contains(HasSubstr("read-only file system")))
        << "what was allowed before may be allowed again";
    store_.files.SetReadOnly(false);
    EXPECT_EQ(session.Close(), absl::OkStatus());
  }
}

TEST_F(DiskTroubleTest, ADiskThatIsReadOnlyAtTheStartIsAnError) {
  ASSERT_TRUE(store_.files.CreateDirectory("model").ok());
  Session session =
      process_.MakeSession({.checkpoint_dir = "model", .summary_dir = "logs", .save_checkpoint_steps = 1});
  ASSERT_TRUE(store_.files.CreateDirectory("logs").ok());
  store_.files.SetReadOnly(true);
  EXPECT_TRUE(absl::IsPermissionDenied(session.Start()));
}

TEST_F(DiskTroubleTest, TheLastSaveWaitsForRoomAndThenSaysWhatIsLost) {
  Session session = MakeSession({.save_steps = 100, .last_save_patience = absl::Seconds(20)});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  store_.files.FillAfter(0);
  const absl::Time before = store_.loop.Now();
  const absl::Status closed = session.Close();
  EXPECT_GE(store_.loop.Now() - before, absl::Seconds(1 + 2 + 4 + 8));
  EXPECT_LE(store_.loop.Now() - before, absl::Seconds(21));
  EXPECT_TRUE(absl::IsResourceExhausted(closed)) << closed;
  EXPECT_THAT(std::string(closed.message()), AllOf(StartsWith("the last checkpoint could not be saved in 20s: "),
                                                   HasSubstr("the 3 steps since model/model.ckpt-0 are lost")));
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0"));
}

TEST_F(DiskTroubleTest, ALastSaveThatFindsRoomInTimeIsNoError) {
  Session session = MakeSession({.save_steps = 100});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  store_.files.FillAfter(0);
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(10), [this] { store_.files.Unfill(); });
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-1"));
}

TEST_F(DiskTroubleTest, ADeletedModelDirIsNoticedAndSavedIntoAtOnce) {
  Session session = MakeSession({.save_interval = absl::Seconds(600)});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  RunAfter(session, absl::Seconds(1));
  ASSERT_TRUE(store_.files.RemoveTree("model").ok());
  EXPECT_THAT(RunAfter(session, absl::Seconds(5)),
              Contains(StartsWith("model/model.ckpt-0 was deleted: saving another checkpoint now")));
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-2"));
  EXPECT_TRUE(store_.files.Exists("model/checkpoint"));
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

}  // namespace
}  // namespace muster::checkpoint_saver_test
