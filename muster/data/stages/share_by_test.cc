// ShareBy: units of work given by another party.
#include <gmock/gmock.h>

#include <deque>
#include <utility>

#include "muster/base/mutex.h"
#include "muster/data/dataset/dataset.h"
#include "muster/data/shuffle.h"
#include "muster/data/testing/numbered_examples.h"

namespace muster::share_by_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

// Gives the units it was made with, then the end.
class ListedWork final : public WorkSource {
 public:
  explicit ListedWork(std::deque<WorkUnit> units) : units_(std::move(units)) {}

  absl::StatusOr<std::optional<WorkUnit>> Take() override {
    MutexLock lock(mutex_);
    if (stopped_) return absl::CancelledError("stopped");
    if (refusals_ > 0) return --refusals_, absl::AbortedError("who asks?");
    if (units_.empty()) {
      ended_ = true;
      changed_.NotifyAll();
      return std::optional<WorkUnit>();
    }
    const WorkUnit unit = units_.front();
    units_.pop_front();
    return std::optional<WorkUnit>(unit);
  }
  bool Begin() override {
    MutexLock lock(mutex_);
    if (lost_ > 0) return --lost_, false;
    ++begun_;
    return true;
  }
  absl::Status Done() override {
    MutexLock lock(mutex_);
    if (failures_-- > 0) return absl::UnavailableError("nobody there");
    ++done_;
    return absl::OkStatus();
  }
  void Stop() override {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  int begun() {
    MutexLock lock(mutex_);
    return begun_;
  }
  void LoseTheNext(int units) {
    MutexLock lock(mutex_);
    lost_ = units;
  }
  // A reader that has joined again is given the units it had.
  void GiveAgain(std::deque<WorkUnit> units) {
    MutexLock lock(mutex_);
    lost_ = static_cast<int>(units.size());
    units_ = std::move(units);
  }
  // Waits until a reader has been told that there are no more units.
  void AwaitTheEnd() {
    MutexLock lock(mutex_);
    while (!ended_) changed_.Wait(mutex_);
  }
  void RefuseOnce() {
    MutexLock lock(mutex_);
    refusals_ = 1;
  }
  int done() {
    MutexLock lock(mutex_);
    return done_;
  }
  bool stopped() {
    MutexLock lock(mutex_);
    return stopped_;
  }
  void FailOnce() {
    MutexLock lock(mutex_);
    failures_ = 1;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<WorkUnit> units_ ABSL_GUARDED_BY(mutex_);
  int begun_ ABSL_GUARDED_BY(mutex_) = 0;
  int lost_ ABSL_GUARDED_BY(mutex_) = 0;
  int done_ ABSL_GUARDED_BY(mutex_) = 0;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

std::shared_ptr<ListedWork> Units(std::deque<WorkUnit> units) { return std::make_shared<ListedWork>(std::move(units)); }

TEST(ShareBy, TakesPlacesOfTheEpochsOrder) {
  const auto drawn = DrawAll(NumberedRows(20).Shuffle({.seed = 5}).ShareBy(Units({{0, 4, 7}, {0, 18, 20}, {1, 0, 2}})));
  const auto zero = ShuffledOrder(20, 5, 0), one = ShuffledOrder(20, 5, 1);
  EXPECT_THAT(Flat(drawn), ElementsAre(zero[4], zero[5], zero[6], zero[18], zero[19], one[0], one[1]));
}

// Waiting for the next unit with rows in hand could mean waiting for ever.
TEST(ShareBy, ABatchEndsWithItsUnit) {
  const auto units = [] { return Units({{0, 0, 5}, {0, 5, 5}, {0, 10, 11}, {0, 12, 16}}); };
  const Dataset rows = NumberedRows(20);
  const auto batches = ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4), ElementsAre(10),
                                   ElementsAre(12, 13), ElementsAre(14, 15));
  EXPECT_THAT(DrawAll(rows.ShareBy(units()).Batch(2)), batches);
  EXPECT_THAT(DrawAll(rows.ShareBy(units()).Prefetch(3).Batch(2).Prefetch(2)), batches);
  EXPECT_THAT(DrawAll(rows.ShareBy(units()).Map([](Example&) { return absl::OkStatus(); }, {.threads = 3}).Batch(2)),
              batches);
}

TEST(ShareBy, AUnitIsBegunWithItsLastBatchAndDoneWhenThatStepIsOver) {
  for (const size_t prefetch : {0, 4}) {
    const auto work = Units({{0, 0, 4}, {0, 4, 6}, {0, 6, 8}});
    auto stream = OpenOrFail(NumberedRows(8).ShareBy(work).Batch(2).Prefetch(prefetch));
    const auto after_next = [&] {
      Draw(*stream, 1);
      const int begun = work->begun();
      EXPECT_EQ(stream->StepOver(), absl::OkStatus());
      return std::pair(begun, work->done());
    };
    EXPECT_EQ(stream->StepOver(), absl::OkStatus());
    EXPECT_EQ(after_next(), std::pair(0, 0)) << "half of the first unit";
    EXPECT_EQ(after_next(), std::pair(1, 1));
    EXPECT_EQ(after_next(), std::pair(2, 2));
    Draw(*stream, 1);
    work->FailOnce();
    EXPECT_TRUE(absl::IsUnavailable(stream->StepOver()));
    EXPECT_EQ(stream->StepOver(), absl::OkStatus());
    EXPECT_EQ(work->done(), 3);
    EXPECT_TRUE(Draw(*stream, 1).empty());
    EXPECT_EQ(stream->StepOver(), absl::OkStatus());
    EXPECT_EQ(work->done(), 3);
  }
}

TEST(ShareBy, TheBatchOfALostUnitIsSkipped) {
  const auto work = Units({{0, 0, 2}, {0, 2, 4}, {0, 4, 6}, {0, 6, 8}});
  auto stream = OpenOrFail(NumberedRows(8).ShareBy(work).Batch(2).Prefetch(2));
  EXPECT_THAT(Flat(Draw(*stream, 1)), ElementsAre(0, 1));
  EXPECT_EQ(stream->StepOver(), absl::OkStatus());
  work->LoseTheNext(2);
  EXPECT_THAT(Flat(Draw(*stream, 1)), ElementsAre(6, 7));
  EXPECT_EQ(stream->StepOver(), absl::OkStatus());
  EXPECT_EQ(work->done(), 2) << "what was lost has no step";
}

TEST(ShareBy, WhoHasToJoinAgainIsToldAndGoesOn) {
  for (const size_t prefetch : {0, 3}) {
    const auto work = Units({{0, 0, 2}, {0, 2, 4}});
    work->RefuseOnce();
    auto stream = OpenOrFail(NumberedRows(4).ShareBy(work).Batch(2).Prefetch(prefetch));
    Example batch;
    EXPECT_TRUE(absl::IsAborted(stream->Next(batch).status()));
    EXPECT_THAT(Flat(Draw(*stream)), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(work->begun(), 2);
  }
}

// Elements that a thread had prepared and lost come again, although it saw the end long ago.
TEST(ShareBy, TheEndIsAskedForAgainByWhoHasNothingInHand) {
  const auto work = Units({{0, 0, 2}, {0, 2, 4}});
  auto stream = OpenOrFail(NumberedRows(4).ShareBy(work).Batch(2).Prefetch(4));
  EXPECT_THAT(Flat(Draw(*stream, 1)), ElementsAre(0, 1));
  work->AwaitTheEnd();
  work->GiveAgain({{0, 2, 4}});
  EXPECT_THAT(Flat(Draw(*stream)), ElementsAre(2, 3));
  EXPECT_EQ(work->begun(), 2);
}

TEST(ShareBy, APositionIsOnlyACount) {
  auto first = OpenOrFail(NumberedRows(8).ShareBy(Units({{3, 0, 4}})).Batch(2));
  Draw(*first, 1);
  const std::string saved = first->SavePosition();
  EXPECT_EQ(saved, "elements=1 epoch=3 at= of memory(8 rows).share_by.batch(2)");
  auto second = OpenOrFail(NumberedRows(8).ShareBy(Units({{3, 4, 8}})).Batch(2));
  ASSERT_EQ(second->RestorePosition(saved), absl::OkStatus());
  EXPECT_THAT(Flat(Draw(*second)), ElementsAre(4, 5, 6, 7)) << "the work source knows what is left";
}

TEST(ShareBy, StopStopsTheWork) {
  const auto work = Units({{0, 0, 4}});
  auto stream = OpenOrFail(NumberedRows(8).ShareBy(work).Batch(2).Prefetch());
  stream->Stop();
  EXPECT_TRUE(work->stopped());
}

TEST(ShareBy, RefusesUnitsOfOtherData) {
  for (const WorkUnit unit : {WorkUnit{0, 0, 9}, WorkUnit{0, -1, 2}, WorkUnit{0, 5, 4}}) {
    auto stream = OpenOrFail(NumberedRows(8).ShareBy(Units({unit})));
    Example element;
    const absl::Status status = stream->Next(element).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("of 8"));
  }
}

TEST(ShareBy, RefusesWhatCantBeShared) {
  const auto work = Units({});
  const Dataset rows = NumberedRows(8);
  EXPECT_THAT(OpenError(rows.ShareBy(nullptr)), HasSubstr("share_by: no work source"));
  EXPECT_THAT(OpenError(StreamedNumbers(8).ShareBy(work)), HasSubstr("needs rows that can be read by number"));
  EXPECT_THAT(OpenError(rows.Repeat().ShareBy(work)), HasSubstr("needs rows that can be read by number"));
  const Dataset shared = rows.ShareBy(work);
  EXPECT_THAT(OpenError(shared.ShareBy(work)), HasSubstr("shared already"));
  EXPECT_THAT(OpenError(shared.Batch(2, /*drop_remainder=*/true)), HasSubstr("dropped rows after share_by"));
  const Dataset wrong[] = {shared.Repeat(), shared.Shuffle(), shared.Batch(2).Repeat(), shared.Shard(2, 0),
                           shared.Take(3),  shared.Skip(3),   shared.Cache(),           Dataset::Interleave({shared})};
  for (const Dataset& dataset : wrong) {
    EXPECT_THAT(OpenError(dataset), HasSubstr("isn't allowed after share_by")) << dataset.Describe();
  }
}

}  // namespace
}  // namespace muster::share_by_test
