#include "muster/train/hooks/global_step_waiter.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "muster/train/testing/hook_driver.h"
#include "muster/train/testing/training_process.h"

namespace muster::global_step_waiter_test {
namespace {

class GlobalStepWaiterTest : public ::testing::Test {
 protected:
  GlobalStepWaiterTest() {
    chief_process_.StartAsChief();
    // The chief makes a step each millisecond, while the test waits on the loop.
    Next();
  }
  void Next() {
    store_.loop.CallAt(store_.loop.Now() + absl::Milliseconds(1), [this] {
      if (chief_trains_) chief_process_.Step();
      if (chief_trains_) Next();
    });
  }

  SimulatedStore store_{1, {"chief:0", "worker:0"}, {.lease = absl::Hours(1)}};
  TrainingProcess chief_process_{store_, "chief:0"};
  TrainingProcess worker_process_{store_, "worker:0"};
  bool chief_trains_ = true;
};

TEST_F(GlobalStepWaiterTest, TheFirstRunWaitsAndSaysHowFarItIs) {
  Session worker = worker_process_.MakeSession({}, {GlobalStepWaiter(2600)});
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  const absl::Time begin = store_.loop.Now();
  const int64_t at = chief_process_.source.steps;
  const auto lines = Logged([&] { EXPECT_EQ(worker.Run(), absl::OkStatus()); });
  EXPECT_EQ(worker_process_.source.steps, 1);
  EXPECT_GE(worker.global_step(), 2600);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines[0], "Waiting for global step 2600 before starting training.");
  // Asked every half second: the first step above 1000 is logged, then the first that is over 1000 beyond it.
  for (size_t i = 1; i < lines.size(); ++i)
    EXPECT_THAT(lines[i], ::testing::StartsWith("Waiting for global step 2600 before starting training. Current step"));
  EXPECT_LE(lines.size(), 3u);
  // It asks twice a second, and no step takes two milliseconds.
  EXPECT_LE(store_.loop.Now() - begin, 2 * absl::Milliseconds(2600 - at) + absl::Milliseconds(501));
  chief_trains_ = false;
  const auto quiet = Logged([&] { EXPECT_EQ(worker.Run(), absl::OkStatus()); });
  EXPECT_TRUE(quiet.empty()) << "once";
}

TEST_F(GlobalStepWaiterTest, SaysThatItWaitsEvery30SecondsWhereNoStepIsMade) {
  Session worker = worker_process_.MakeSession({}, {GlobalStepWaiter(1000000000)});
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  chief_trains_ = false;
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(70), [this] { worker_process_.stop = true; });
  const auto lines = Logged([&] { EXPECT_EQ(worker.Run(), absl::OkStatus()); });
  const auto says = ::testing::HasSubstr("before starting training. Current step is");
  EXPECT_EQ(
      std::count_if(lines.begin(), lines.end(), [&](const std::string& line) { return ::testing::Value(line, says); }),
      2);
  EXPECT_EQ(worker.Close(), absl::OkStatus());
}

TEST_F(GlobalStepWaiterTest, WithoutANumberNobodyWaits) {
  Session worker = worker_process_.MakeSession({}, {GlobalStepWaiter(0)});
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  chief_trains_ = false;
  const absl::Time begin = store_.loop.Now();
  EXPECT_TRUE(Logged([&] { EXPECT_EQ(worker.Run(), absl::OkStatus()); }).empty());
  EXPECT_LE(store_.loop.Now() - begin, absl::Milliseconds(400));
}

TEST_F(GlobalStepWaiterTest, AStopOrTheEndOfTrainingEndsTheWaiting) {
  for (const bool signal : {true, false}) {
    TrainingProcess process(store_, "worker:0");
    Session worker = process.MakeSession({}, {GlobalStepWaiter(1000000000)});
    ASSERT_EQ(worker.Start(), absl::OkStatus());
    chief_trains_ = false;
    store_.loop.CallAt(store_.loop.Now() + absl::Seconds(7), [&] {
      if (signal) {
        process.stop = true;
      } else {
        store_.service(0).Shutdown("enough");
      }
    });
    const absl::Time begin = store_.loop.Now();
    EXPECT_EQ(worker.Run(), absl::OkStatus());
    EXPECT_EQ(process.source.steps, 0);
    EXPECT_TRUE(worker.ShouldStop());
    EXPECT_LE(store_.loop.Now() - begin, absl::Seconds(8));
    EXPECT_EQ(worker.Close(), absl::OkStatus());
  }
}

}  // namespace
}  // namespace muster::global_step_waiter_test
