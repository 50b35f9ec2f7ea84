#include "muster/store/testing/scripted_process.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::scripted_process_test {
namespace {

class ScriptedProcessTest : public ::testing::Test {
 protected:
  bool Drive() {
    const std::vector<ScriptedProcess*> both = {&first_, &second_};
    return ScriptedProcess::Drive(world_, both, absl::Seconds(10));
  }

  SimulatedClock clock_;
  SimulatedEventLoop world_{clock_};
  std::vector<std::string> happened_;
  ScriptedProcess first_{world_};
  ScriptedProcess second_{world_};
};

TEST_F(ScriptedProcessTest, WhoBeganToWaitFirstCanBeOverFirst) {
  bool go = false;
  first_.Start([&] {
    EXPECT_TRUE(first_.RunUntil([&] { return go; }, absl::InfiniteFuture()));
    happened_.emplace_back("first");
  });
  second_.Start([&] {
    second_.CallAt(second_.Now() + absl::Seconds(1), [&] { go = true; });
    EXPECT_TRUE(second_.RunUntil([&] { return !happened_.empty(); }, absl::InfiniteFuture()));
    happened_.emplace_back("second");
  });
  EXPECT_TRUE(first_.busy());
  EXPECT_TRUE(Drive());
  EXPECT_FALSE(first_.busy());
  EXPECT_EQ(happened_, (std::vector<std::string>{"first", "second"}));
}

TEST_F(ScriptedProcessTest, AWaitEndsAtItsDeadline) {
  const absl::Time deadline = world_.Now() + absl::Seconds(3);
  first_.Start([&] { EXPECT_FALSE(first_.RunUntil([] { return false; }, deadline)); });
  EXPECT_TRUE(Drive());
  EXPECT_EQ(world_.Now(), deadline);
}

TEST_F(ScriptedProcessTest, DrivingEndsWithItsPatience) {
  bool go = false;
  const absl::Time began = world_.Now();
  first_.Start([&] { first_.RunUntil([&] { return go; }, absl::InfiniteFuture()); });
  EXPECT_FALSE(Drive());
  EXPECT_TRUE(first_.busy());
  EXPECT_EQ(world_.Now(), began + absl::Seconds(10));
  go = true;
  EXPECT_TRUE(Drive());
}

}  // namespace
}  // namespace muster::scripted_process_test
