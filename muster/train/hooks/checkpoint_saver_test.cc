#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/service/passing_handler.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/testing/hook_driver.h"
#include "muster/train/testing/training_process.h"

namespace muster::checkpoint_saver_test {
namespace {

using ::testing::Contains, ::testing::ElementsAre, ::testing::StartsWith;

// Records its calls, with the checkpoints that exist then.
class Listener final : public CheckpointSaverListener {
 public:
  Listener(std::string name, FileSystem& files, std::vector<std::string>& story)
      : name_(std::move(name)), files_(files), story_(story) {}

  absl::Status Begin() override { return Note("begin"); }
  absl::Status BeforeSave(const SessionContext&, int64_t step) override { return Note(absl::StrCat("before ", step)); }
  absl::StatusOr<AfterSaving> AfterSave(const SessionContext&, int64_t step) override {
    const absl::Status noted = Note(absl::StrCat("after ", step));
    if (!noted.ok()) return noted;
    return step == stops_at ? AfterSaving::kStop : AfterSaving::kContinue;
  }
  absl::Status End(const SessionContext&, int64_t step) override { return Note(absl::StrCat("end ", step)); }

  int64_t stops_at = -1;
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

TEST_F(BusyPsTest, TheLastSaveIsTriedFiveTimes) {
  ASSERT_EQ(session_.Start(), absl::OkStatus());
  ASSERT_EQ(session_.Run(), absl::OkStatus());
  story_.clear();
  cuts_ = 4 * kAttempts;
  EXPECT_EQ(session_.Close(), absl::OkStatus());
  EXPECT_EQ(cuts_, 0);
  EXPECT_THAT(story_, ElementsAre("a before 1 of 1", "a before 1 of 1", "a before 1 of 1", "a before 1 of 1",
                                  "a before 1 of 1", "a after 1 of 2", "a end 1 of 2"));
}

// The save is worth a retry, and the exit code says so.
TEST_F(BusyPsTest, ALastStepThatCannotBeSavedIsUnavailable) {
  ASSERT_EQ(session_.Start(), absl::OkStatus());
  ASSERT_EQ(session_.Run(), absl::OkStatus());
  story_.clear();
  cuts_ = 5 * kAttempts;
  const absl::Status closed = session_.Close();
  EXPECT_TRUE(absl::IsUnavailable(closed)) << closed;
  EXPECT_THAT(std::string(closed.message()), StartsWith("the last checkpoint could not be saved: "));
  EXPECT_EQ(cuts_, 0);
  EXPECT_THAT(story_, ElementsAre("a before 1 of 1", "a before 1 of 1", "a before 1 of 1", "a before 1 of 1",
                                  "a before 1 of 1", "a end 1 of 1"));
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0"));
}

}  // namespace
}  // namespace muster::checkpoint_saver_test
