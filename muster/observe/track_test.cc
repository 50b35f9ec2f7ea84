#include "muster/observe/track.h"

#include <gmock/gmock.h>

namespace muster::track_test {
namespace {

using ::testing::ElementsAre, ::testing::Field;

class ManualClock final : public TraceClock {
 public:
  int64_t Nanos() const override { return now; }
  int64_t now = 1000;
};

std::vector<TraceEvent> Take(Track& track) {
  std::vector<TraceEvent> events;
  track.ring()->Take([&](const TraceEvent& event) { events.push_back(event); });
  return events;
}

double Mean(const StepTimesTable& table, const std::string& what) {
  for (const StepTimesRow& row : table.rows)
    if (row.what == what) return row.mean_us;
  return -1;
}

TEST(TrackTest, TheTimeOfWhatIsNestedIsNotTheOutersAndTheRestIsOther) {
  ManualClock clock;
  Track track("training", clock, 16);
  {
    const Track::StepScope step(&track, 7);
    clock.now += 1000;
    {
      const Track::Span hooks(&track, Activity::kHooks);
      clock.now += 3000;
      const Track::Span save(&track, Activity::kCheckpoint, {.bytes = 5});
      clock.now += 40000;
      EXPECT_EQ(track.doing().activity, Activity::kCheckpoint);
    }
    EXPECT_EQ(track.doing().activity, Activity::kStep);
    clock.now += 2000;
    track.Record(Activity::kWait, clock.now - 1500, clock.now);
  }
  const StepTimesTable table = track.times().Table("worker:0", track.name());
  EXPECT_EQ(table.steps, 1);
  EXPECT_DOUBLE_EQ(table.whole.mean_us, 46);
  EXPECT_DOUBLE_EQ(Mean(table, "hooks"), 3);
  EXPECT_DOUBLE_EQ(Mean(table, "checkpoint"), 40);
  EXPECT_DOUBLE_EQ(Mean(table, "wait"), 1.5);
  EXPECT_DOUBLE_EQ(Mean(table, "other"), 1.5);
  const std::vector<TraceEvent> events = Take(track);
  EXPECT_THAT(
      events,
      ElementsAre(Field(&TraceEvent::activity, Activity::kCheckpoint), Field(&TraceEvent::activity, Activity::kHooks),
                  Field(&TraceEvent::activity, Activity::kWait), Field(&TraceEvent::activity, Activity::kStep)));
  EXPECT_EQ(events[0].bytes, 5);
  EXPECT_EQ(events[1].duration, 43000);  // an event keeps its real duration
  EXPECT_EQ(events[3].begin, 1000);
  for (const TraceEvent& event : events) EXPECT_EQ(event.step, 7);
}

TEST(TrackTest, AStepThatFailedCountsForNothing) {
  ManualClock clock;
  Track track("training", clock, 16);
  {
    Track::StepScope step(&track, 1);
    clock.now += 1000;
    step.GiveUp();
  }
  EXPECT_EQ(track.times().Table("worker:0", "training").steps, 0);
  { const Track::Span outside(&track, Activity::kPull); }  // outside any step
  { const Track::StepScope step(&track, 1); }
  EXPECT_EQ(Mean(track.times().Table("worker:0", "training"), "pull"), -1);
}

TEST(TrackTest, WithoutATrackNothingIsRecorded) {
  const Track::StepScope step(nullptr, 1);
  const Track::Span span(nullptr, Activity::kPull);
}

TEST(TrackTest, WithoutARingTimesAreKept) {
  ManualClock clock;
  Track track("training", clock);
  EXPECT_EQ(track.ring(), nullptr);
  {
    const Track::StepScope step(&track, 1);
    const Track::Span span(&track, Activity::kCompute);
    clock.now += 1000;
  }
  EXPECT_DOUBLE_EQ(Mean(track.times().Table("worker:0", "training"), "compute"), 1);
}

TEST(TrackTest, FlowsAreNeverZeroAndTellClientsApart) {
  EXPECT_NE(FlowOf(0, 0), 0);
  EXPECT_NE(FlowOf(0, 1), FlowOf(1, 1));
  EXPECT_NE(FlowOf(0, 1), FlowOf(0, 2));
}

TEST(StepTimesTest, TheTextHasARowForWhatTookTimeAndForTheRest) {
  StepTimes times;
  std::array<int64_t, kActivities> parts{};
  parts[static_cast<size_t>(Activity::kCompute)] = 800000;
  for (int i = 0; i < 100; ++i) times.Add(1000000, parts);
  const std::string text = StepTimesText(times.Table("worker:0", "training"));
  EXPECT_THAT(text, ::testing::HasSubstr("worker:0, training: 100 steps"));
  EXPECT_THAT(text, ::testing::ContainsRegex("compute .* 800.0 +80.0"));
  EXPECT_THAT(text, ::testing::ContainsRegex("other .* 200.0 +20.0"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("apply")));
  EXPECT_EQ(StepTimesText(StepTimes().Table("worker:0", "training")), "");
}

// Like a worker in a round of direct apply, which interrupts its wait every few milliseconds.
TEST(TrackTest, WhoLooksUpFromAWaitHasWaitedSinceItBegan) {
  ManualClock clock;
  Track track("training", clock, 0);
  const auto wait = [&] {
    const Track::Span waits(&track, Activity::kWait);
    clock.now += 50'000'000;
    return clock.now - track.doing().since;
  };
  const auto look_up_for = [&](int64_t nanos) {
    const Track::Span apply(&track, Activity::kApply);
    clock.now += nanos;
  };
  {
    const Track::StepScope step(&track, 0);
    EXPECT_EQ(wait(), 50'000'000);
    look_up_for(1000);
    EXPECT_EQ(wait(), 100'001'000);
    look_up_for(1000);
    EXPECT_EQ(wait(), 150'002'000);
    look_up_for(20'000'000);
    EXPECT_EQ(wait(), 50'000'000) << "that was work";
  }
  const Track::StepScope step(&track, 1);
  EXPECT_EQ(wait(), 50'000'000) << "another step's wait is another";
}

}  // namespace
}  // namespace muster::track_test
