// Compares every algorithm with a ps with its published equations: after every minibatch, real stores, clients and
// algorithms, whose workers take turns in a scripted order, must hold the values of a simulation in plain doubles.
#include <gmock/gmock.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "muster/algo/testing/mathematics_comparison.h"

namespace muster::algorithm_mathematics_test {
namespace {

// The algorithm, and whether its workers apply their own updates where they may.
using Parameter = std::tuple<MathematicsCase, bool>;

class AlgorithmMathematicsTest : public ::testing::TestWithParam<Parameter> {
 protected:
  static const MathematicsCase& algorithm() { return std::get<0>(GetParam()); }
  static bool direct() { return std::get<1>(GetParam()); }
};

TEST_P(AlgorithmMathematicsTest, EveryCommitIsThatOfTheEquations) {
  MathematicsComparison both(algorithm(), direct());
  ASSERT_EQ(both.JoinAll(), "");
  ASSERT_EQ(both.Run(55), "");
  EXPECT_EQ(both.reference().global_step(), both.reference().updates());
}

TEST_P(AlgorithmMathematicsTest, TheLastWindowIsCommittedHoweverShort) {
  MathematicsComparison both(algorithm(), direct());
  ASSERT_EQ(both.JoinAll(), "");
  ASSERT_EQ(both.Run(12), "");
  ASSERT_EQ(both.ReachMidWindow(), "");
  const int64_t before = both.reference().updates();
  ASSERT_EQ(both.Finish(), "");
  // With a window of one nothing is left to commit, except the exchange with which the next minibatch would have begun.
  const bool exchanges =
      algorithm().kind == ReferenceKind::kElastic || algorithm().kind == ReferenceKind::kElasticRounds;
  EXPECT_EQ(both.reference().updates() > before, exchanges || algorithm().reference.window > 1);
}

TEST_P(AlgorithmMathematicsTest, WorkersComeLateLeaveInMidWindowAndComeAgain) {
  MathematicsComparison both(algorithm(), direct());
  ASSERT_EQ(both.Join(0), "");
  ASSERT_EQ(both.Join(1), "");
  ASSERT_EQ(both.Run(10), "");
  ASSERT_EQ(both.Join(2), "");
  ASSERT_EQ(both.Run(15), "");
  ASSERT_EQ(both.Leave(2), "");
  ASSERT_EQ(both.Run(10), "");
  ASSERT_EQ(both.Join(2), "");
  ASSERT_EQ(both.Run(15), "");
  ASSERT_EQ(both.Leave(1), "");
  ASSERT_EQ(both.Run(10), "");
}

TEST_P(AlgorithmMathematicsTest, LoadedValuesBeginANewWindow) {
  MathematicsComparison both(algorithm(), direct());
  ASSERT_EQ(both.JoinAll(), "");
  ASSERT_EQ(both.Run(20), "");
  std::vector<double> values(17);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.7 * std::cos(0.4 * static_cast<double>(i));
  ASSERT_EQ(both.Load(values, 100), "");
  ASSERT_EQ(both.Run(35), "");
}

INSTANTIATE_TEST_SUITE_P(Equations, AlgorithmMathematicsTest,
                         ::testing::Combine(::testing::ValuesIn(MathematicsCases()), ::testing::Bool()),
                         [](const ::testing::TestParamInfo<Parameter>& info) {
                           return std::get<0>(info.param).name + (std::get<1>(info.param) ? "_direct" : "");
                         });

// Only where messages are sent: a worker that applies its own updates sends none.
class LostMessagesTest : public ::testing::TestWithParam<MathematicsCase> {};

TEST_P(LostMessagesTest, LostDelayedAndRepeatedOnesChangeNothing) {
  std::vector<Fault> faults;
  for (uint64_t first = 5; first < 60; first += 13) {
    const auto push = static_cast<uint16_t>(StoreMethod::kPushPull);
    faults.push_back({.kind = FaultKind::kCutReply, .first = first, .times = 2, .method = push});
    faults.push_back({.kind = FaultKind::kCutRequest, .first = first + 4, .method = push, .bytes = 20});
    faults.push_back({.kind = FaultKind::kDuplicateRequest, .first = first + 6, .times = 3, .method = push});
    faults.push_back(
        {.kind = FaultKind::kDelayReply, .first = first + 10, .method = push, .delay = absl::Milliseconds(40)});
  }
  MathematicsComparison both(GetParam(), /*direct=*/false, faults);
  ASSERT_EQ(both.JoinAll(), "");
  ASSERT_EQ(both.Run(55), "");
  for (int worker = 0; worker < 3; ++worker) EXPECT_GE(both.training().faults_met(worker), 5u) << worker;
  ASSERT_EQ(both.ReachMidWindow(), "");
  ASSERT_EQ(both.Finish(), "");
}

INSTANTIATE_TEST_SUITE_P(Equations, LostMessagesTest, ::testing::ValuesIn(MathematicsCases()),
                         [](const ::testing::TestParamInfo<MathematicsCase>& info) { return info.param.name; });

// The comparison does notice a mistake: the same run with another rate differs at once.
TEST(MathematicsComparisonTest, AWrongRateIsSeen) {
  MathematicsCase one = MathematicsCases().front();
  one.reference.server_rule.learning_rate *= 1 + 1e-6;
  MathematicsComparison both(one, /*direct=*/false);
  ASSERT_EQ(both.JoinAll(), "");
  EXPECT_THAT(both.Run(1), ::testing::HasSubstr("global: element 0 is off"));
}

}  // namespace
}  // namespace muster::algorithm_mathematics_test
