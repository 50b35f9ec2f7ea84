#include "muster/launch/system/later_calls.h"

#include <gmock/gmock.h>

#include <vector>

#include "muster/base/clock.h"

namespace muster::later_calls_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

class LaterCallsTest : public testing::Test {
 protected:
  void RunRound() { loop_.RunOnce(absl::InfinitePast()); }

  FdLoop loop_{RealClock()};
  LaterCalls calls_{loop_};
  std::vector<int> made_;
};

TEST_F(LaterCallsTest, AreMadeByTheLoopInTheirOrder) {
  calls_.Add([this] { made_.push_back(1); });
  calls_.Add([this] { made_.push_back(2); });
  EXPECT_THAT(made_, IsEmpty());
  RunRound();
  EXPECT_THAT(made_, ElementsAre(1, 2));
  RunRound();
  EXPECT_THAT(made_, ElementsAre(1, 2));
}

TEST_F(LaterCallsTest, ThoseThatACallAddsComeInTheNextRound) {
  calls_.Add([this] {
    calls_.Add([this] { made_.push_back(2); });
    made_.push_back(1);
  });
  RunRound();
  EXPECT_THAT(made_, ElementsAre(1));
  RunRound();
  EXPECT_THAT(made_, ElementsAre(1, 2));
}

TEST_F(LaterCallsTest, ACallMayDropTheOthers) {
  calls_.Add([this] { calls_.Clear(); });
  calls_.Add([this] { made_.push_back(1); });
  RunRound();
  RunRound();
  EXPECT_THAT(made_, IsEmpty());
}

}  // namespace
}  // namespace muster::later_calls_test
