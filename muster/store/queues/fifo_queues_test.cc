// The queues of a ps as a state machine: what is answered when, and that each request has its effect once.
#include "muster/store/queues/fifo_queues.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/store/messages/messages.h"

namespace muster::fifo_queues_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

constexpr uint64_t kForEver = QueueRequest::kNoLimit;

struct Given {
  bool there = false;
  absl::Status status;
  QueueReply reply;
  std::vector<int64_t> elements;

  bool ok() const { return there && status.ok(); }
};
using Pending = std::shared_ptr<Given>;

class Sink final : public Responder::Sink {
 public:
  explicit Sink(Pending given) : given_(std::move(given)) {}
  void Send(uint64_t, absl::Status status, absl::string_view control, absl::Span<const ByteSpan> bulk,
            std::shared_ptr<const void>) override {
    EXPECT_FALSE(given_->there) << "answered twice";
    given_->there = true;
    given_->status = std::move(status);
    if (given_->status.ok()) {
      EXPECT_EQ(Decode(std::string(control), given_->reply), absl::OkStatus());
    }
    for (const ByteSpan segment : bulk) {
      given_->elements.resize(segment.size() / sizeof(int64_t));
      std::memcpy(given_->elements.data(), segment.data(), segment.size());
    }
  }

 private:
  const Pending given_;
};

// Elements are single int64; each caller has one lane and one connection, with the same number.
class FifoQueuesTest : public ::testing::Test {
 protected:
  FifoQueuesTest() {
    for (uint64_t lane = 1; lane <= 4; ++lane) EXPECT_TRUE(Open(lane, "q", 2)->ok());
  }
  static std::pair<Pending, Responder> Ask() {
    auto given = std::make_shared<Given>();
    return {given, Responder(std::make_shared<Sink>(given))};
  }
  Pending Open(uint64_t lane, const std::string& name, uint64_t capacity,
               const std::vector<QueueComponent>& components = {{DType::kInt64, {}}}) {
    auto [given, responder] = Ask();
    queues_.Open(ConnectionId{lane}, {"worker:" + std::to_string(lane), lane, name, capacity, components}, now_,
                 std::move(responder));
    return given;
  }
  // By default, numbers are the lane's next ones.
  Pending Enqueue(uint64_t lane, int64_t value, uint64_t wait_ms = kForEver, uint64_t sequence = 0,
                  uint64_t connection = 0) {
    auto [given, responder] = Ask();
    queues_.Enqueue(ConnectionId{connection > 0 ? connection : lane},
                    {.lane = lane, .sequence = Number(lane, sequence), .wait_ms = wait_ms}, AsBytes(&value, 1), now_,
                    std::move(responder));
    return given;
  }
  Pending Dequeue(uint64_t lane, uint64_t count = 1, bool small_batch = false, uint64_t wait_ms = kForEver,
                  uint64_t sequence = 0, uint64_t connection = 0) {
    auto [given, responder] = Ask();
    queues_.Dequeue(ConnectionId{connection > 0 ? connection : lane},
                    {.lane = lane,
                     .sequence = Number(lane, sequence),
                     .wait_ms = wait_ms,
                     .count = count,
                     .small_batch = small_batch},
                    now_, std::move(responder));
    return given;
  }
  Pending Close(uint64_t lane, bool cancel_pending = false, uint64_t sequence = 0) {
    auto [given, responder] = Ask();
    queues_.Close(ConnectionId{lane},
                  {.lane = lane, .sequence = Number(lane, sequence), .cancel_pending = cancel_pending}, now_,
                  std::move(responder));
    return given;
  }
  QueueReply Size() {
    auto [given, responder] = Ask();
    queues_.Size({.lane = 1}, now_, std::move(responder));
    EXPECT_TRUE(given->ok());
    return given->reply;
  }
  uint64_t Number(uint64_t lane, uint64_t sequence) { return sequence > 0 ? sequence : ++numbers_[lane]; }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  FifoQueues queues_{{.bytes = 1 << 20}};
  std::map<uint64_t, uint64_t> numbers_;
};

TEST_F(FifoQueuesTest, GivesElementsInTheOrderInWhichTheyCame) {
  Enqueue(1, 10);
  Enqueue(2, 20);
  EXPECT_EQ(Size().size, 2U);
  EXPECT_THAT(Dequeue(3)->elements, ElementsAre(10));
  const Pending second = Dequeue(4);
  EXPECT_THAT(second->elements, ElementsAre(20));
  EXPECT_EQ(second->reply.elements, 1U);
  EXPECT_EQ(second->reply.size, 0U);
}

TEST_F(FifoQueuesTest, AFullQueueHoldsTheEnqueuersBackInTheirOrder) {
  Enqueue(1, 10);
  Enqueue(1, 20);
  const Pending third = Enqueue(1, 30);
  const Pending fourth = Enqueue(2, 40);
  EXPECT_FALSE(third->there || fourth->there);
  EXPECT_EQ(Size().size, 2U) << "the capacity";
  EXPECT_THAT(Dequeue(3)->elements, ElementsAre(10));
  EXPECT_TRUE(third->ok());
  EXPECT_FALSE(fourth->there);
  EXPECT_THAT(Dequeue(3, 3)->elements, ElementsAre(20, 30, 40));
  EXPECT_TRUE(fourth->ok());
}

TEST_F(FifoQueuesTest, AnEmptyQueueHoldsTheDequeuersBackInTheirOrder) {
  const Pending many = Dequeue(1, 2);
  const Pending one = Dequeue(2);
  Enqueue(3, 10);
  EXPECT_FALSE(many->there || one->there) << "nobody is served before the first to ask";
  Enqueue(3, 20);
  EXPECT_THAT(many->elements, ElementsAre(10, 20));
  Enqueue(3, 30);
  EXPECT_THAT(one->elements, ElementsAre(30));
}

TEST_F(FifoQueuesTest, ABatchMayBeLargerThanTheCapacity) {
  const Pending many = Dequeue(1, 5);
  for (int64_t i = 0; i < 5; ++i) EXPECT_TRUE(Enqueue(2, i)->ok());
  EXPECT_THAT(many->elements, ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(FifoQueuesTest, ABatchHasComponentAfterComponent) {
  const std::vector<QueueComponent> pair = {{DType::kInt64, {2}}, {DType::kInt64, {}}};
  ASSERT_TRUE(Open(9, "pairs", 4, pair)->ok());
  for (int64_t i = 1; i <= 2; ++i) {
    const std::vector<int64_t> element = {10 * i, 10 * i + 1, 100 * i};
    auto [given, responder] = Ask();
    queues_.Enqueue(ConnectionId{9}, {.lane = 9, .sequence = Number(9, 0)}, AsBytes(element.data(), element.size()),
                    now_, std::move(responder));
    EXPECT_TRUE(given->ok());
  }
  EXPECT_THAT(Dequeue(9, 2)->elements, ElementsAre(10, 11, 20, 21, 100, 200));
}

TEST_F(FifoQueuesTest, AClosedQueueTakesNothingMoreAndGivesWhatThereIs) {
  Enqueue(1, 10);
  Enqueue(1, 20);
  const Pending waiting = Enqueue(2, 30);
  EXPECT_TRUE(Close(1)->ok());
  EXPECT_FALSE(waiting->there) << "a waiting enqueue is still let in";
  EXPECT_TRUE(absl::IsCancelled(Enqueue(3, 40)->status));
  EXPECT_TRUE(Size().closed);
  EXPECT_THAT(Dequeue(4)->elements, ElementsAre(10));
  EXPECT_TRUE(waiting->ok());
  EXPECT_THAT(Dequeue(4, 2)->elements, ElementsAre(20, 30));
  const Pending after = Dequeue(4);
  EXPECT_TRUE(absl::IsOutOfRange(after->status)) << after->status;
  EXPECT_TRUE(Close(2)->ok()) << "once more does no harm";
}

TEST_F(FifoQueuesTest, CloseMayCancelThoseWhoWaitForRoom) {
  Enqueue(1, 10);
  Enqueue(1, 20);
  const Pending waiting = Enqueue(2, 30);
  Close(1);
  EXPECT_FALSE(waiting->there);
  Close(1, /*cancel_pending=*/true);
  EXPECT_TRUE(absl::IsCancelled(waiting->status));
  EXPECT_THAT(Dequeue(4, 2)->elements, ElementsAre(10, 20)) << "what was in stays in";
}

TEST_F(FifoQueuesTest, ABatchThatIsNeverFullGoesBackUnlessFewerWillDo) {
  Enqueue(1, 10);
  const Pending whole = Dequeue(2, 3);
  const Pending up_to = Dequeue(3, 3, /*small_batch=*/true);
  const Pending nothing = Dequeue(4, 3, /*small_batch=*/true);
  EXPECT_EQ(Size().size, 0U) << "the first to ask has it";
  EXPECT_FALSE(up_to->there) << "fewer will do only once the queue is closed";
  Close(1);
  EXPECT_TRUE(absl::IsOutOfRange(whole->status));
  EXPECT_THAT(std::string(whole->status.message()), AllOf(HasSubstr("3 asked for"), HasSubstr("1 there")));
  EXPECT_THAT(up_to->elements, ElementsAre(10));
  EXPECT_EQ(nothing->status, absl::OutOfRangeError("queue 'q' is closed and used up: 3 asked for, 0 there"));
}

TEST_F(FifoQueuesTest, AnAnswerThatWasLostIsGivenAgain) {
  Enqueue(1, 10);
  EXPECT_TRUE(Enqueue(1, 10, kForEver, 1)->ok());
  EXPECT_EQ(Size().size, 1U) << "one and the same";
  Enqueue(1, 20);
  EXPECT_THAT(Dequeue(2)->elements, ElementsAre(10));
  EXPECT_THAT(Dequeue(2, 1, false, kForEver, 1)->elements, ElementsAre(10));
  EXPECT_THAT(Dequeue(2)->elements, ElementsAre(20));
  EXPECT_TRUE(absl::IsFailedPrecondition(Dequeue(2, 1, false, kForEver, 1)->status)) << "a late copy";
  Close(1);
  const uint64_t last = numbers_[1];
  EXPECT_TRUE(absl::IsCancelled(Enqueue(1, 30)->status));
  EXPECT_TRUE(absl::IsCancelled(Enqueue(1, 30, kForEver, last + 1)->status));
}

TEST_F(FifoQueuesTest, WhoAsksAgainWhileItWaitsIsAnsweredOnBothConnections) {
  const Pending first = Dequeue(1);
  const Pending again = Dequeue(1, 1, false, kForEver, 1, /*connection=*/7);
  const Pending other = Dequeue(2);
  Enqueue(3, 10);
  EXPECT_THAT(first->elements, ElementsAre(10));
  EXPECT_THAT(again->elements, ElementsAre(10));
  EXPECT_FALSE(other->there);
  for (int i = 0; i < 20; ++i) Dequeue(2, 1, false, kForEver, 1);
  const Pending last = Dequeue(2, 1, false, kForEver, 1);
  Enqueue(3, 20);
  EXPECT_THAT(last->elements, ElementsAre(20));
  EXPECT_TRUE(other->there && !other->status.ok()) << "no more than a few are kept";
}

TEST_F(FifoQueuesTest, ABrokenConnectionTakesItsRequestsOutOfTheLine) {
  const Pending gone = Dequeue(1, 2);
  const Pending next = Dequeue(2);
  Enqueue(3, 10);
  EXPECT_FALSE(next->there) << "the first has it";
  queues_.Disconnect(ConnectionId{1}, now_);
  EXPECT_THAT(next->elements, ElementsAre(10)) << "it went back";
  Enqueue(3, 20);
  Enqueue(3, 30);
  const Pending held = Enqueue(3, 40);
  queues_.Disconnect(ConnectionId{3}, now_);
  EXPECT_THAT(Dequeue(1, 2, false, kForEver, 1)->elements, ElementsAre(20, 30)) << "the same number, and it begins";
  EXPECT_EQ(Size().size, 0U) << "40 left with its connection";
  EXPECT_TRUE(Enqueue(3, 40, kForEver, numbers_[3])->ok());
  EXPECT_EQ(Size().size, 1U);
}

TEST_F(FifoQueuesTest, ANewNumberGivesUpWhatTheLaneWaitedFor) {
  const Pending given_up = Dequeue(1, 2);
  Enqueue(3, 10);
  EXPECT_THAT(Dequeue(1)->elements, ElementsAre(10));
  EXPECT_TRUE(absl::IsCancelled(given_up->status));
  EXPECT_TRUE(absl::IsFailedPrecondition(Dequeue(1, 2, false, kForEver, 1)->status));
}

TEST_F(FifoQueuesTest, ADeadlineThatHasPassedStaysSo) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(Dequeue(2, 1, false, /*wait_ms=*/0)->status));
  const Pending waits = Dequeue(1, 2, false, /*wait_ms=*/100);
  Enqueue(3, 10);
  EXPECT_EQ(queues_.NextDeadline(), now_ + absl::Milliseconds(100));
  now_ += absl::Milliseconds(99);
  queues_.Expire(now_);
  EXPECT_FALSE(waits->there);
  now_ += absl::Microseconds(1300);
  queues_.Expire(now_);
  EXPECT_EQ(waits->status,
            absl::DeadlineExceededError("queue 'q' had too few elements within 100ms: 2 asked for, 1 there"));
  EXPECT_EQ(queues_.NextDeadline(), absl::InfiniteFuture());
  EXPECT_EQ(Size().size, 1U) << "what it had is there again";
  EXPECT_TRUE(absl::IsDeadlineExceeded(Dequeue(1, 2, false, kForEver, 1)->status));
  Enqueue(3, 20);
  const Pending full = Enqueue(3, 30, 50);
  now_ += absl::Milliseconds(50);
  queues_.Expire(now_);
  EXPECT_EQ(full->status, absl::DeadlineExceededError("queue 'q' had no room within 50ms: 2 of 2 there"));
  EXPECT_THAT(Dequeue(4, 2)->elements, ElementsAre(10, 20));
}

TEST_F(FifoQueuesTest, TheFirstWhoOpensSaysWhatAQueueIs) {
  const Pending capacity = Open(5, "q", 3);
  EXPECT_TRUE(absl::IsInvalidArgument(capacity->status));
  EXPECT_THAT(std::string(capacity->status.message()),
              AllOf(HasSubstr("worker:5"), HasSubstr("capacity 2"), HasSubstr("capacity 3")));
  const Pending signature = Open(5, "q", 2, {{DType::kFloat32, {2, 3}}});
  EXPECT_THAT(std::string(signature->status.message()), AllOf(HasSubstr("(int64[])"), HasSubstr("(float32[2,3])")));
  EXPECT_TRUE(absl::IsInvalidArgument(Open(1, "other", 2)->status)) << "a lane is of one queue";
}

TEST_F(FifoQueuesTest, RefusesWhatCannotBe) {
  EXPECT_TRUE(absl::IsInvalidArgument(Open(5, "", 2)->status));
  EXPECT_TRUE(absl::IsInvalidArgument(Open(5, "r", 0)->status));
  EXPECT_TRUE(absl::IsInvalidArgument(Open(5, "r", 1, {})->status));
  EXPECT_TRUE(absl::IsInvalidArgument(Open(5, "r", 1, {{DType::kInt64, {-1}}})->status));
  EXPECT_TRUE(absl::IsInvalidArgument(Open(5, "r", 1, {{static_cast<DType>(77), {1}}})->status));
  EXPECT_TRUE(
      absl::IsInvalidArgument(Open(5, "r", 1, {{DType::kInt64, {int64_t{1} << 40, int64_t{1} << 40}}})->status));
  EXPECT_TRUE(absl::IsResourceExhausted(Open(5, "r", 1 << 20)->status)) << "more than the ps may hold";
  EXPECT_TRUE(absl::IsAborted(Dequeue(77)->status)) << "a lane that nobody opened";
  EXPECT_TRUE(absl::IsInvalidArgument(Dequeue(1, 0)->status));
  EXPECT_TRUE(absl::IsInvalidArgument(Dequeue(1, uint64_t{1} << 40)->status));
  EXPECT_TRUE(absl::IsInvalidArgument(queues_.CheckElement({.lane = 1}, 7)));
  EXPECT_TRUE(absl::IsAborted(queues_.CheckElement({.lane = 77}, 8)));
}

TEST_F(FifoQueuesTest, TheMemoryOfAllQueuesIsBounded) {
  // 2^20 bytes: 72 each, and those of "q".
  EXPECT_TRUE(Open(5, "large", (1 << 20) / 72 - 3)->ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Open(6, "more", 2)->status));
  EXPECT_TRUE(Open(6, "large", (1 << 20) / 72 - 3)->ok()) << "there is one of it";
}

TEST_F(FifoQueuesTest, ALaneIsForgottenLongAfterItsConnectionBroke) {
  Enqueue(1, 10);
  queues_.Disconnect(ConnectionId{1}, now_);
  now_ += FifoQueuesOptions::kLaneMemory;
  Open(5, "q", 2);
  EXPECT_TRUE(Enqueue(1, 10, kForEver, 1)->ok()) << "not yet";
  EXPECT_EQ(Size().size, 1U);
  queues_.Disconnect(ConnectionId{1}, now_);
  now_ += FifoQueuesOptions::kLaneMemory + absl::Seconds(1);
  Open(6, "q", 2);
  EXPECT_TRUE(absl::IsAborted(Enqueue(1, 10, kForEver, 1)->status));
}

// Like a consumer whose host has lost power: its connection doesn't break, and nobody would get the elements.
TEST_F(FifoQueuesTest, WhoHasGoneSilentHoldsUpNobody) {
  const Pending silent = Dequeue(2, 2);
  Enqueue(3, 10);
  const Pending behind = Dequeue(4);
  EXPECT_FALSE(behind->there) << "the first in line has the element";
  EXPECT_EQ(queues_.NextDeadline(), now_ + FifoQueuesOptions::kLaneSilence);
  now_ += FifoQueuesOptions::kLaneSilence / 2;
  const Pending again = Dequeue(4, 1, false, kForEver, 1);
  now_ += FifoQueuesOptions::kLaneSilence / 2;
  queues_.Expire(now_);
  EXPECT_TRUE(absl::IsUnavailable(silent->status)) << silent->status;
  EXPECT_THAT(again->elements, ElementsAre(10));
  // The caller was only stopped.
  const Pending back = Dequeue(2, 2, false, kForEver, 1);
  EXPECT_FALSE(back->there);
  Enqueue(3, 20);
  Enqueue(3, 30);
  EXPECT_THAT(back->elements, ElementsAre(20, 30));
}

TEST_F(FifoQueuesTest, WhoAsksForTheSizeIsNotSilent) {
  const Pending waits = Dequeue(1);
  for (int i = 0; i < 5; ++i) {
    now_ += FifoQueuesOptions::kLaneSilence - absl::Seconds(1);
    Size();  // of lane 1
    queues_.Expire(now_);
  }
  EXPECT_FALSE(waits->there);
  Enqueue(2, 10);
  EXPECT_THAT(waits->elements, ElementsAre(10));
}

TEST_F(FifoQueuesTest, SaysWhoWaitsForWhat) {
  Dequeue(2, 3);
  const auto views = queues_.Describe();
  ASSERT_EQ(views.size(), 1U);
  ASSERT_EQ(views[0].waiting.size(), 1U);
  EXPECT_EQ(views[0].waiting[0].task, "worker:2");
  EXPECT_THAT(views[0].waiting[0].what, AllOf(HasSubstr("'q'"), HasSubstr("3 more")));
  EXPECT_EQ(views[0].waiting[0].since, now_);
}

TEST_F(FifoQueuesTest, AtTheEndNobodyIsLeftWithoutAnAnswer) {
  const Pending dequeue = Dequeue(2, 3);
  queues_.FailAll(absl::CancelledError("over"));
  EXPECT_TRUE(absl::IsCancelled(dequeue->status));
  EXPECT_THAT(queues_.Describe()[0].waiting, IsEmpty());
}

}  // namespace
}  // namespace muster::fifo_queues_test
