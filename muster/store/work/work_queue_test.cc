#include "muster/store/work/work_queue.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace muster::work_queue_test {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kLife = 7;

// A worker as the queue sees it.
struct Worker {
  uint32_t client = 0;
  uint64_t incarnation = kLife;
  uint64_t requests = 0;
  uint64_t after = 0;
  std::optional<uint64_t> over = {};  // unset: all its steps are over
};

class WorkQueueTest : public ::testing::Test {
 protected:
  absl::StatusOr<TakeWorkReply> Ask(const Worker& worker, uint64_t number) {
    return queue_.Take({.stamp = {worker.client, worker.incarnation, number},
                        .spec = spec_,
                        .after = worker.after,
                        .over = worker.over.value_or(worker.after)});
  }
  TakeWorkReply Take(Worker& worker) {
    const auto reply = Ask(worker, ++worker.requests).value();
    if (reply.answer == WorkAnswer::kUnit) worker.after = reply.ticket;
    return reply;
  }
  void Count(const Worker& worker, uint64_t through) {
    queue_.Note(static_cast<int>(worker.client), {through, through, through});
  }
  static std::tuple<int64_t, int64_t, int64_t> Place(const TakeWorkReply& reply) {
    EXPECT_EQ(reply.answer, WorkAnswer::kUnit);
    return {reply.epoch, reply.begin, reply.end};
  }
  static std::tuple<int64_t, int64_t, int64_t> At(int64_t epoch, int64_t begin, int64_t end) {
    return {epoch, begin, end};
  }

  WorkSpec spec_{"train", 10, 4, 2};
  WorkQueue queue_{3};
  Worker first_{0};
  Worker second_{1};
  Worker third_{2};
};

TEST_F(WorkQueueTest, UnitsComeInOrderEpochAfterEpochAndTheLastOfEachIsShorter) {
  EXPECT_EQ(Place(Take(first_)), At(0, 0, 4));
  EXPECT_EQ(Place(Take(second_)), At(0, 4, 8));
  EXPECT_EQ(Place(Take(first_)), At(0, 8, 10));
  EXPECT_EQ(Place(Take(first_)), At(1, 0, 4)) << "nobody waits for the end of an epoch";
  EXPECT_EQ(Place(Take(first_)), At(1, 4, 8));
  EXPECT_EQ(Place(Take(first_)), At(1, 8, 10));
  EXPECT_EQ(Take(first_).answer, WorkAnswer::kWait) << "the second worker may lose what it has";
  Count(second_, 1);
  EXPECT_EQ(Take(first_).answer, WorkAnswer::kEnd) << "what is left is its own";
  EXPECT_EQ(Take(second_).answer, WorkAnswer::kWait);
  Count(first_, 5);
  EXPECT_EQ(Take(second_).answer, WorkAnswer::kEnd);
}

TEST_F(WorkQueueTest, WithoutANumberOfEpochsThereIsNoEnd) {
  spec_.epochs = 0;
  for (int64_t epoch = 0; epoch < 50; ++epoch) {
    for (const int64_t begin : {0, 4, 8}) {
      const TakeWorkReply reply = Take(first_);
      EXPECT_EQ(Place(reply), At(epoch, begin, std::min<int64_t>(begin + 4, 10)));
      Count(first_, reply.ticket);
    }
  }
}

TEST_F(WorkQueueTest, WhatTheDeadHadGoesToTheFrontInItsOrder) {
  Take(first_);
  Take(second_);
  Take(first_);
  const TakeWorkReply counted = Take(first_);
  EXPECT_EQ(counted.ticket, 3U);
  Count(first_, 1);
  EXPECT_EQ(queue_.Return(0), 2U) << "the first of the three is done";
  EXPECT_EQ(Place(Take(second_)), At(0, 8, 10));
  EXPECT_EQ(Place(Take(second_)), At(1, 0, 4));
  EXPECT_EQ(Place(Take(second_)), At(1, 4, 8));
  EXPECT_EQ(queue_.Return(0), 0U) << "it has nothing any more";
}

TEST_F(WorkQueueTest, ANewLifeGivesBackWhatTheOldOneHadAndItsTicketsGoOn) {
  EXPECT_EQ(Take(first_).ticket, 1U);
  EXPECT_EQ(Take(first_).ticket, 2U);
  Worker again{.client = 0, .incarnation = kLife + 1};
  const TakeWorkReply reply = Take(again);
  EXPECT_EQ(reply.ticket, 3U) << "a push of the old life must not be taken for one that brings this";
  EXPECT_EQ(Place(reply), At(0, 0, 4));
  EXPECT_EQ(queue_.Incarnation(0), kLife + 1);
  EXPECT_EQ(queue_.LastTicket(0), 3U);
}

TEST_F(WorkQueueTest, ARequestThatComesAgainIsAnsweredAgain) {
  const TakeWorkReply reply = Take(first_);
  Worker asks = first_;
  asks.after = 0;
  EXPECT_EQ(Place(*Ask(asks, 1)), Place(reply));
  EXPECT_EQ(Ask(asks, 1)->ticket, 1U);
  EXPECT_EQ(Place(Take(first_)), At(0, 4, 8));
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(asks, 1).status())) << "a late copy";
}

TEST_F(WorkQueueTest, WhatNeverArrivedIsGivenOutAgain) {
  Take(first_);
  const uint64_t arrived = first_.after;
  Take(first_);  // the answer is lost, and the request given up
  first_.after = arrived;
  const TakeWorkReply reply = Take(first_);
  EXPECT_EQ(Place(reply), At(0, 4, 8));
  EXPECT_EQ(reply.ticket, 3U);
  EXPECT_EQ(Place(Take(first_)), At(0, 8, 10));
}

TEST_F(WorkQueueTest, ACopyOfAnAnsweredRequestTakesNothingForGood) {
  Take(first_);
  Count(first_, 1);
  Worker copy = first_;
  copy.after = 0;
  EXPECT_EQ(Place(*Ask(copy, 1)), At(0, 4, 8)) << "the queue can't know that nobody listens";
  EXPECT_EQ(Place(Take(first_)), At(0, 4, 8)) << "the next request says what has arrived";
}

TEST_F(WorkQueueTest, WhatAWorkerGivesUpIsOthers) {
  Take(first_);
  Take(first_);
  queue_.GiveUp(0, {2, 77});
  EXPECT_EQ(Place(Take(second_)), At(0, 4, 8));
  Count(first_, 1);
  queue_.GiveUp(0, {1});
  EXPECT_EQ(Place(Take(second_)), At(0, 8, 10)) << "what is done isn't given up";
}

// Windows that will never be full: every worker has trained on all that it has, and waits for more.
TEST_F(WorkQueueTest, WhoWaitsForEachOtherIsEndedOneByOne) {
  spec_ = {"train", 3, 1, 1};
  first_.over = 0;
  Take(first_);
  Take(second_);
  Take(second_);
  second_.over = 1;
  EXPECT_EQ(Take(first_).answer, WorkAnswer::kWait);
  second_.over = 2;
  EXPECT_EQ(Take(second_).answer, WorkAnswer::kWait) << "the first one's step goes on";
  EXPECT_EQ(Take(third_).answer, WorkAnswer::kWait);
  first_.over = 1;
  EXPECT_EQ(Take(first_).answer, WorkAnswer::kWait) << "the second one goes first";
  EXPECT_EQ(Take(third_).answer, WorkAnswer::kWait) << "a worker with nothing stays, because another may die";
  EXPECT_EQ(Take(second_).answer, WorkAnswer::kEnd);
  EXPECT_EQ(Take(first_).answer, WorkAnswer::kWait) << "the second one pushes what it has";
  queue_.Return(1);
  EXPECT_EQ(Place(Take(third_)), At(0, 1, 2)) << "or dies";
}

// With a synchronous gate each step takes all workers, so a worker with units waits for one without.
TEST_F(WorkQueueTest, AtTheEndNobodyHasSomeReadyWhileAnotherHasNone) {
  const size_t ahead[] = {5, 1, 2};
  spec_ = {"train", 30, 1, 2};
  std::vector<Worker> workers = {{0}, {1}, {2}};
  std::vector<uint64_t> trained(3);
  for (bool over = false; !over;) {
    for (size_t i = 0; i < workers.size(); ++i) {
      workers[i].over = trained[i];
      while (workers[i].after - trained[i] < ahead[i] && Take(workers[i]).answer == WorkAnswer::kUnit) continue;
    }
    for (size_t i = 0; i < workers.size(); ++i) {
      over = over || workers[i].after == trained[i];
      if (!over) Count(workers[i], ++trained[i]);
    }
  }
  EXPECT_EQ(trained, std::vector<uint64_t>(3, 20)) << "all of both epochs";
}

TEST_F(WorkQueueTest, WhoHasItsShareOfWhatIsLeftUsesItUpFirst) {
  spec_ = {"train", 7, 1, 1};
  first_.over = 0;
  EXPECT_EQ(Take(first_).answer, WorkAnswer::kUnit);
  EXPECT_EQ(Take(first_).answer, WorkAnswer::kWait) << "three workers could have two of the six each";
  EXPECT_EQ(Take(second_).answer, WorkAnswer::kUnit);
  EXPECT_EQ(Take(first_).answer, WorkAnswer::kWait);
  first_.over = 1;
  EXPECT_EQ(Take(first_).answer, WorkAnswer::kUnit);
  WorkQueue alone(1);
  for (uint64_t i = 0; i < 7; ++i)
    EXPECT_EQ(alone.Take({.stamp = {0, kLife, i + 1}, .spec = spec_, .after = i})->answer, WorkAnswer::kUnit);
}

TEST_F(WorkQueueTest, WhatIsContributedToARoundOutlivesItsSenderButIsInNoCheckpointYet) {
  Take(first_);
  Take(first_);
  queue_.Note(0, {.counted = 1, .fired = 0, .applied = 1});
  EXPECT_EQ(queue_.Save()->entries.size(), 2U);
  EXPECT_EQ(queue_.Return(0), 1U);
  EXPECT_EQ(queue_.Save()->entries.size(), 2U);
  queue_.Note(0, {.counted = 1, .fired = 1, .applied = 1});
  ASSERT_EQ(queue_.Save()->entries.size(), 1U);
  EXPECT_EQ(queue_.Save()->entries[0].begin, 4);
}

TEST_F(WorkQueueTest, TheStateSaysWhatIsInAnUpdateThatIsntCounted) {
  Take(first_);
  Take(first_);
  queue_.Note(0, {.counted = 0, .fired = 0, .applied = 1});
  const WorkState state = *queue_.Save();
  ASSERT_EQ(state.entries.size(), 2U);
  EXPECT_TRUE(state.entries[0].in_update);
  EXPECT_FALSE(state.entries[1].in_update);
  EXPECT_EQ(state.entries[0].holder, 1U);
}

TEST_F(WorkQueueTest, ALoadedStateGivesOutWhatIsNotDone) {
  EXPECT_FALSE(queue_.Save().has_value());
  EXPECT_FALSE(queue_.Describe().has_value());
  const WorkState state{.spec = spec_, .epoch = 1, .next = 4, .entries = {{0, 8, 10}, {1, 0, 4}}};
  EXPECT_TRUE(queue_.Load(state));
  EXPECT_EQ(queue_.Save()->next, 4) << "also before anybody has asked";
  EXPECT_EQ(Place(Take(first_)), At(0, 8, 10));
  EXPECT_EQ(Place(Take(first_)), At(1, 0, 4));
  EXPECT_EQ(Place(Take(first_)), At(1, 4, 8));
  EXPECT_TRUE(queue_.Load(state)) << "in the middle of training";
  EXPECT_FALSE(queue_.Holds(0)) << "what it had is void";
  const TakeWorkReply again = Take(first_);
  EXPECT_EQ(Place(again), At(0, 8, 10));
  EXPECT_EQ(again.ticket, 4U);
}

TEST_F(WorkQueueTest, UnitsOfAnotherSizeAndMoreEpochsGoOnFromWhatIsLoaded) {
  queue_.Load(WorkState{.spec = spec_, .epoch = 2, .next = 0, .entries = {{1, 4, 8}}});
  spec_.rows_per_unit = 3;
  spec_.epochs = 3;
  EXPECT_EQ(Place(Take(first_)), At(1, 4, 7));
  EXPECT_EQ(Place(Take(first_)), At(1, 7, 8));
  EXPECT_EQ(Place(Take(first_)), At(2, 0, 3));
}

TEST_F(WorkQueueTest, AnotherQueuesStateIsntGoneOnWith) {
  queue_.Load(WorkState{.spec = {"train", 11, 4, 2}, .epoch = 1, .next = 4});
  EXPECT_EQ(Place(Take(first_)), At(0, 0, 4));
}

TEST_F(WorkQueueTest, InitialValuesBeginAnew) {
  Take(first_);
  EXPECT_FALSE(queue_.Load(std::nullopt)) << "nothing was trained yet";
  EXPECT_TRUE(queue_.Holds(0));
  Count(first_, 1);
  EXPECT_TRUE(queue_.Load(std::nullopt));
  EXPECT_EQ(Place(Take(second_)), At(0, 0, 4));
}

TEST_F(WorkQueueTest, APsThatIsRestartedKnowsWhoHasWhat) {
  Take(first_);
  Take(second_);
  Take(second_);
  queue_.GiveUp(1, {1});
  WorkQueue next(3);
  next.Restore(*queue_.Save());
  EXPECT_EQ(next.Incarnation(1), kLife);
  const auto again = next.Take({.stamp = {1, kLife, second_.requests}, .spec = spec_, .after = 1});
  EXPECT_EQ(Place(*again), At(0, 8, 10)) << "whose answer was lost with the ps";
  EXPECT_EQ(again->ticket, 2U);
  EXPECT_EQ(Place(*next.Take({.stamp = {0, kLife, 2}, .spec = spec_, .after = 1, .over = 1})), At(0, 4, 8));
  EXPECT_EQ(next.Return(0), 2U);
}

TEST_F(WorkQueueTest, APsThatLostItsMemoryGivesTicketsAboveThoseOfTheProcess) {
  first_.after = 41;
  EXPECT_EQ(Take(first_).ticket, 42U);
}

TEST_F(WorkQueueTest, ItShowsWhoHasWhat) {
  Take(first_);
  Take(second_);
  queue_.GiveUp(1, {1});
  const WorkQueue::View view = *queue_.Describe();
  EXPECT_EQ(view.spec, spec_);
  EXPECT_EQ(view.next, 8);
  EXPECT_EQ(view.returned, 1U);
  ASSERT_EQ(view.hands.size(), 1U);
  EXPECT_EQ(view.hands[0].client, 0);
  EXPECT_EQ(view.hands[0].units, 1U);
}

TEST_F(WorkQueueTest, BadRequestsAreRefused) {
  const auto refused = [&](const WorkSpec& spec) {
    return absl::IsInvalidArgument(queue_.Take({.stamp = {0, kLife, 1}, .spec = spec}).status());
  };
  EXPECT_TRUE(refused({"", 10, 4, 2}));
  EXPECT_TRUE(refused({std::string(257, 'x'), 10, 4, 2}));
  EXPECT_TRUE(refused({"train", 0, 4, 2}));
  EXPECT_TRUE(refused({"train", 10, 0, 2}));
  EXPECT_TRUE(refused({"train", 10, 4, -1}));
  EXPECT_TRUE(absl::IsInvalidArgument(queue_.Take({.stamp = {3, kLife, 1}, .spec = spec_}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(queue_.Take({.stamp = {0, kLife, 0}, .spec = spec_}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(queue_.Take({.stamp = {0, kLife, 1}, .spec = spec_, .after = ~uint64_t{0}}).status()));
  Take(first_);
  spec_.rows_per_unit = 5;
  const auto other = Ask(second_, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(other.status()));
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("10 rows in units of 4, 2 epochs"));
}

TEST_F(WorkQueueTest, WhatOneWorkerMayHaveIsBounded) {
  spec_ = {"train", 1000, 1, 1};
  for (size_t i = 0; i < kMostWorkInHand; ++i) Take(first_);
  EXPECT_TRUE(absl::IsResourceExhausted(Ask(first_, ++first_.requests).status()));
  Count(first_, 1);
  EXPECT_EQ(Take(first_).answer, WorkAnswer::kUnit);
}

// Workers that take, train, lose answers, give up, are counted late and die, in the order that a seed gives.
class RandomWorkers {
 public:
  explicit RandomWorkers(unsigned seed) : random_(seed) {
    spec_ = {"train", 1 + static_cast<int64_t>(random_() % 40), 1 + static_cast<int64_t>(random_() % 5), 3};
  }
  bool all_ended() const {
    return std::all_of(lives_.begin(), lives_.end(), [](const Life& life) { return life.ended; });
  }
  void Step() {
    const auto client = static_cast<uint32_t>(random_() % lives_.size());
    Life& life = lives_[client];
    switch (random_() % 8) {
      case 0:
        if (!life.ended && random_() % 4 == 0) Die(client);
        break;
      case 1:
        if (!life.in_hand.empty() && random_() % 4 == 0) GiveUpOldest(client);
        break;
      case 2:
      case 3:
        if (!life.in_hand.empty()) CountOldest(client);
        break;
      default:
        if (!life.ended && life.in_hand.size() < 5) Ask(client);
    }
  }
  void ExpectEachUnitCountedOnce() const {
    const int64_t units = (spec_.rows + spec_.rows_per_unit - 1) / spec_.rows_per_unit;
    EXPECT_EQ(counted_.size(), static_cast<size_t>(spec_.epochs * units));
    for (const auto& [unit, times] : counted_) EXPECT_EQ(times, 1) << std::get<0>(unit) << " " << std::get<1>(unit);
  }

 private:
  struct Life {
    uint64_t incarnation = 1;
    uint64_t requests = 0;
    uint64_t after = 0;
    uint64_t asked_after = 0;                   // by the last request
    std::map<uint64_t, TakeWorkReply> in_hand;  // by ticket
    bool ended = false;
  };
  void Die(uint32_t client) {
    lives_[client] = {.incarnation = lives_[client].incarnation + 1};
    if (random_() % 2 == 0) queue_.Return(static_cast<int>(client));
  }
  void GiveUpOldest(uint32_t client) {
    const auto oldest = lives_[client].in_hand.begin();
    queue_.GiveUp(static_cast<int>(client), {oldest->first});
    lives_[client].in_hand.erase(oldest);
  }
  void CountOldest(uint32_t client) {
    const auto oldest = lives_[client].in_hand.begin();
    ++counted_[{oldest->second.epoch, oldest->second.begin}];
    queue_.Note(static_cast<int>(client), {oldest->first, oldest->first, oldest->first});
    lives_[client].in_hand.erase(oldest);
  }
  void Ask(uint32_t client) {
    Life& life = lives_[client];
    const bool again = life.requests > 0 && random_() % 3 == 0;
    if (!again) {
      ++life.requests;
      life.asked_after = life.after;
    }
    const auto reply =
        queue_.Take({.stamp = {client, life.incarnation, life.requests}, .spec = spec_, .after = life.asked_after})
            .value();
    if (again || random_() % 5 == 0) return;  // nobody hears it
    if (reply.answer == WorkAnswer::kUnit) {
      life.after = reply.ticket;
      life.in_hand[reply.ticket] = reply;
    }
    life.ended = reply.answer == WorkAnswer::kEnd && life.in_hand.empty();
  }

  std::minstd_rand random_;
  WorkSpec spec_;
  WorkQueue queue_{3};
  std::vector<Life> lives_ = std::vector<Life>(3);
  std::map<std::tuple<int64_t, int64_t>, int> counted_;  // by epoch and first row
};

TEST(WorkQueueRandomTest, EveryUnitIsCountedOnceWhateverHappens) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomWorkers workers(seed);
    for (int steps = 0; steps < 100000 && !workers.all_ended(); ++steps) workers.Step();
    ASSERT_TRUE(workers.all_ended());
    workers.ExpectEachUnitCountedOnce();
  }
}

}  // namespace
}  // namespace muster::work_queue_test
