// A checkpoint's cut on ps whose workers apply their own updates.
#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "muster/store/arena/count_lock.h"
#include "muster/store/client/checkpoint_calls.h"
#include "muster/store/client/cut_leader.h"
#include "muster/store/testing/direct_worker.h"

namespace muster::direct_cut_test {
namespace {

using ::testing::HasSubstr;

// Sends the chief's messages of a cut one by one, to ps whose values a worker on their host updates itself.
class DirectCutTest : public ::testing::Test {
 protected:
  DirectCutTest() {
    for (const std::string& address : store_.addresses()) channels_.push_back(transport_.Connect(address));
  }
  // Returns the reply, once it is there.
  std::shared_ptr<absl::StatusOr<std::string>> Send(int ps, StoreMethod method, std::string control) {
    auto answer = std::make_shared<absl::StatusOr<std::string>>(absl::UnknownError("none yet"));
    channels_[ps]->Call({.method = static_cast<uint16_t>(method), .control = std::move(control)},
                        [answer](absl::StatusOr<Reply> reply) {
                          *answer = reply.ok() ? absl::StatusOr<std::string>(reply->control) : reply.status();
                        });
    return answer;
  }
  auto Hold(int ps) {
    return Send(ps, StoreMethod::kHold,
                Encode(HoldRequest{chief_.client->MakeStamp(ps, kNumber), chief_.client->chief_epoch(ps)}));
  }
  auto Mark(int ps, const std::vector<uint64_t>& through) {
    return Send(ps, StoreMethod::kMark,
                Encode(MarkRequest{.stamp = chief_.client->MakeStamp(ps, kNumber),
                                   .chief_epoch = chief_.client->chief_epoch(ps),
                                   .hold = kNumber,
                                   .through = through}));
  }
  void At(absl::Duration after, absl::AnyInvocable<void()> what) {
    store_.loop.CallAt(store_.loop.Now() + after, std::move(what));
  }
  // Returns the first element of the part of ps 0, which has `w`.
  float Part() {
    const auto part = ExportPart(*chief_.client, 0, kNumber).value();
    float value = 0;
    std::memcpy(&value, part.bytes.data(), sizeof value);
    return value;
  }

  static constexpr uint64_t kNumber = 1000;
  SimulatedStore store_{2, {"worker:0", "worker:1"}, {.lease = absl::Hours(1)}, nullptr, /*direct=*/true};
  DirectWorker chief_{store_, "worker:0", true, ApplyChoice::kAuto, kPlain};
  DirectWorker worker_{store_, "worker:1", false, ApplyChoice::kAuto, kPlain};
  SimulatedTransport transport_{store_.network, store_.loop};
  std::vector<std::unique_ptr<Channel>> channels_;
};

TEST_F(DirectCutTest, AnUpdateThatBeginsWhileThePsAreHeldIsOutside) {
  const float before = worker_.model.Values<float>(0)[0];
  Hold(0), Hold(1);
  store_.Pass(absl::Milliseconds(10));
  std::shared_ptr<absl::StatusOr<std::string>> marked;
  At(absl::Milliseconds(50), [&] { Mark(1, {0, 0}), marked = Mark(0, {0, 0}); });
  const absl::Time began = store_.loop.Now();
  EXPECT_EQ(worker_.Push(-1)->global_step, 1);
  EXPECT_GE(store_.loop.Now() - began, absl::Milliseconds(50));
  store_.Pass(absl::Milliseconds(10));
  ASSERT_TRUE(marked->ok()) << marked->status();
  EXPECT_EQ(worker_.model.Values<float>(0)[0], before + 1);
  EXPECT_EQ(Part(), before);
}

TEST_F(DirectCutTest, AnUpdateThatOnePsKnowsOfIsWaitedForByAll) {
  const float before = worker_.model.Values<float>(0)[0];
  Hold(1);
  store_.Pass(absl::Milliseconds(10));
  std::vector<std::shared_ptr<absl::StatusOr<std::string>>> answers;
  // The hold reached ps 1 before the update began, ps 0 after.
  At(absl::Milliseconds(20), [&] { answers.push_back(Hold(0)); });
  At(absl::Milliseconds(40), [&] {
    HoldReply reply;
    ASSERT_EQ(Decode(**answers[0], reply), absl::OkStatus());
    EXPECT_GT(reply.begun[1], 0);
    answers.push_back(Mark(0, {0, reply.begun[1]}));
    answers.push_back(Mark(1, {0, reply.begun[1]}));
  });
  EXPECT_EQ(worker_.Push(-1)->global_step, 1);
  store_.Pass(absl::Milliseconds(10));
  ASSERT_EQ(answers.size(), 3);
  for (size_t i = 0; i < answers.size(); ++i) ASSERT_TRUE(answers[i]->ok()) << answers[i]->status() << i;
  MarkReply reply;
  ASSERT_EQ(Decode(**answers[1], reply), absl::OkStatus());
  EXPECT_EQ(reply.global_step, 1);
  ASSERT_TRUE(worker_.Push(-1).ok());
  EXPECT_EQ(Part(), before + 1);
}

// The worker has told one ps of its update, but not yet the other.
TEST_F(DirectCutTest, AnUpdateThatAPsHearsOfLateIsWaitedFor) {
  ASSERT_TRUE(worker_.Push(-1).ok());
  const auto record = [&](int ps) -> ClientRecord& { return store_.service(ps).MakeView().arena->client(1); };
  const uint64_t next = record(0).direct_begun + 1;
  record(0).direct_begun = next;
  Hold(0), Hold(1);
  store_.Pass(absl::Milliseconds(10));
  const auto marked = Mark(1, {0, next});
  Mark(0, {0, next});
  store_.Pass(absl::Milliseconds(10));
  ASSERT_FALSE(marked->ok());
  ASSERT_TRUE(worker_.Push(-1).ok());
  ASSERT_EQ(record(1).direct_begun, next);
  store_.Pass(absl::Milliseconds(10));
  EXPECT_TRUE(marked->ok()) << marked->status();
}

// At the end, too: its worker has the update's result, so the last checkpoint has the update.
TEST_F(DirectCutTest, AnUpdateThatHasBegunWhenTrainingEndsIsWaitedFor) {
  ASSERT_TRUE(worker_.Push(-1).ok());
  const auto record = [&](int ps) -> ClientRecord& { return store_.service(ps).MakeView().arena->client(1); };
  const uint64_t next = record(0).direct_begun + 1;
  for (int ps : {0, 1}) {
    record(ps).direct_begun = next;
    store_.service(ps).Shutdown("enough");
    Hold(ps);
  }
  store_.Pass(absl::Milliseconds(10));
  const auto marked = Mark(0, {0, next});
  store_.Pass(absl::Milliseconds(10));
  ASSERT_FALSE(marked->ok());
  {
    const Arena::CountLock lock(*store_.service(0).MakeView().arena);
    record(0).numbers.last_applied = next;
  }
  store_.Pass(absl::Milliseconds(10));
  EXPECT_TRUE(marked->ok()) << marked->status();

  // A process that was killed in the middle of its update is waited for only so long.
  const auto other = Mark(1, {0, next});
  store_.Pass(absl::Milliseconds(500));
  ASSERT_FALSE(other->ok());
  store_.Pass(absl::Milliseconds(500));
  EXPECT_TRUE(other->ok()) << other->status();
}

TEST_F(DirectCutTest, AnUpdateWhoseCountWasInterruptedIsInTheStep) {
  ASSERT_TRUE(worker_.Push(-1).ok());
  // As if its process had died between writing its numbers and writing the counters.
  Arena& arena = *store_.service(0).MakeView().arena;
  ArenaHeader& header = arena.header();
  ASSERT_EQ(header.counters.global_step, 1);
  header.journal = {
      .valid = 1, .client = 1, .numbers = arena.client(1).numbers, .counters = header.counters, .gate = header.gate};
  header.counters.global_step = 0;
  const auto cut = CutCheckpoint(*chief_.client).value();
  EXPECT_EQ(cut.global_step, 1);
}

// The update has been announced as begun, and goes through the ps under the same number.
TEST_F(DirectCutTest, APsThatComesBackWithoutAWayInWhileAnUpdateWaitsForIt) {
  const float before = worker_.model.Values<float>(0)[0];
  Hold(0), Hold(1);
  store_.Pass(absl::Milliseconds(10));
  At(absl::Milliseconds(20), [&] {
    store_.KillPs(1);
    store_.KeepMemories();
    store_.StartPs(1);
  });
  const uint64_t number = worker_.client->NextNumbers().sequence;
  const auto pushed = worker_.Push(-1).value();
  EXPECT_EQ(pushed.global_step, 1);
  EXPECT_EQ(worker_.model.Values<float>(0)[0], before + 1);
  EXPECT_EQ(worker_.client->NextNumbers().sequence, number + 2) << "a number was left out";
}

// Nobody ends the hold, as with a ps that is stopped in the middle of it.
TEST_F(DirectCutTest, AHoldThatDoesNotEndIsThePatiencesBusiness) {
  store_.service(1).MakeView().arena->header().held = 1;
  const absl::Time began = store_.loop.Now();
  const absl::Status held = worker_.Push(-1).status();
  EXPECT_TRUE(absl::IsUnavailable(held)) << held;
  EXPECT_THAT(std::string(held.message()), HasSubstr("ps:1 (ps1:2222)"));
  EXPECT_GE(store_.loop.Now() - began, absl::Seconds(20));
  EXPECT_LE(store_.loop.Now() - began, absl::Seconds(21));
  EXPECT_EQ(store_.service(0).MakeView().arena->client(1).direct_begun, 0) << "nothing is under way";
}

TEST_F(DirectCutTest, WhoIsToStopWaitsForNoHold) {
  bool stop = false;
  worker_.client = store_.Client("worker:1", {.stop_requested = [&stop] { return stop; }, .apply = ApplyChoice::kAuto});
  store_.Pass(absl::Seconds(5));  // its earlier life's connections have closed
  ASSERT_EQ(worker_.Start(), absl::OkStatus());
  store_.service(0).MakeView().arena->header().held = 1;
  At(absl::Seconds(1), [&] { stop = true; });
  const absl::Time began = store_.loop.Now();
  const absl::Status stopped = worker_.Push(-1).status();
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
  EXPECT_LE(store_.loop.Now() - began, absl::Seconds(2));
}

TEST_F(DirectCutTest, AChiefThatDiesHoldsNobodyForLong) {
  Hold(0), Hold(1);
  store_.Pass(absl::Milliseconds(10));
  const absl::Time began = store_.loop.Now();
  EXPECT_TRUE(worker_.Push(-1).ok());
  EXPECT_LE(store_.loop.Now() - began, absl::Seconds(3));
}

}  // namespace
}  // namespace muster::direct_cut_test
