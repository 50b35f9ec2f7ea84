#include "muster/observe/event_ring.h"

#include <gmock/gmock.h>

#include <thread>

namespace muster::event_ring_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

std::vector<int64_t> Take(EventRing& ring) {
  std::vector<int64_t> steps;
  ring.Take([&](const TraceEvent& event) { steps.push_back(event.step); });
  return steps;
}

TEST(EventRingTest, GivesWhatCameInItsOrderAroundTheEnd) {
  EventRing ring(4);
  for (int64_t turn = 0; turn < 10; ++turn) {
    for (int64_t i = 0; i < 3; ++i) ring.Push({.step = 3 * turn + i});
    EXPECT_THAT(Take(ring), ElementsAre(3 * turn, 3 * turn + 1, 3 * turn + 2));
  }
  EXPECT_EQ(ring.left_out(), 0);
}

TEST(EventRingTest, AFullRingKeepsTheOldOnesAndCountsTheRest) {
  EventRing ring(4);
  for (int64_t i = 0; i < 6; ++i) ring.Push({.step = i});
  EXPECT_EQ(ring.left_out(), 2);
  EXPECT_THAT(Take(ring), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Take(ring), IsEmpty());
  ring.Push({.step = 6});
  EXPECT_THAT(Take(ring), ElementsAre(6));
}

TEST(EventRingTest, OneThreadTakesWhileAnotherPushes) {
  EventRing ring(64);
  constexpr int64_t kEvents = 200000;
  std::thread producer([&] {
    for (int64_t i = 0; i < kEvents; ++i) ring.Push({.begin = i, .step = i});
  });
  int64_t last = -1;
  uint64_t taken = 0;
  const auto look = [&](const TraceEvent& event) {
    EXPECT_EQ(event.begin, event.step);  // whole
    EXPECT_GT(event.step, last);         // in order
    last = event.step;
    ++taken;
  };
  while (taken + ring.left_out() < kEvents) ring.Take(look);
  producer.join();
  ring.Take(look);
  EXPECT_EQ(taken + ring.left_out(), kEvents);
}

}  // namespace
}  // namespace muster::event_ring_test
