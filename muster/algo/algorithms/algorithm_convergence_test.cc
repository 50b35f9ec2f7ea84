// Every algorithm finds the optimum of a quadratic, and those with windows send less, the longer the window is.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "muster/algo/testing/mathematics_cases.h"
#include "muster/algo/testing/scripted_training.h"

namespace muster::algorithm_convergence_test {
namespace {

class AlgorithmConvergenceTest : public ::testing::TestWithParam<MathematicsCase> {};

TEST_P(AlgorithmConvergenceTest, TheGlobalValuesComeNearTheOptimum) {
  const ScriptedProblem problem = {.spread = 0, .wave = 0};
  ScriptedTraining training({.choice = GetParam().choice, .dtype = GetParam().dtype, .problem = problem});
  ASSERT_EQ(training.JoinAll(), absl::OkStatus());
  for (int minibatch = 0; minibatch < 600; ++minibatch) {
    for (int worker = 0; worker < 3; ++worker)
      if (!training.busy(worker)) training.Start(worker);
    // With a gate the three workers stay together.
    training.Drive();
  }
  for (int worker = 0; worker < 3; ++worker) EXPECT_EQ(training.status(worker), absl::OkStatus());
  const std::vector<double> global = training.Global();
  for (size_t i = 0; i < global.size(); ++i)
    EXPECT_NEAR(global[i], problem.Optimum(0, static_cast<int>(i)), GetParam().near) << i;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, AlgorithmConvergenceTest, ::testing::ValuesIn(MathematicsCases()),
                         [](const ::testing::TestParamInfo<MathematicsCase>& info) { return info.param.name; });

struct Windowed {
  std::string name;
  AlgorithmChoice choice;
};
void PrintTo(const Windowed& one, std::ostream* out) { *out << one.name; }

// Instances differ by algorithm and parameters except for the window.
class AlgorithmTrafficTest : public ::testing::TestWithParam<Windowed> {
 protected:
  // Measures one worker's traffic in 61 minibatches: one more, as exchanges are made at the beginning of the next
  // window.
  static Channel::Stats TrafficWith(int window) {
    AlgorithmChoice choice = GetParam().choice;
    choice.parameters["window"] = std::to_string(window);
    ScriptedTraining training({.choice = choice, .workers = 1, .columns = 4000});
    EXPECT_EQ(training.JoinAll(), absl::OkStatus());
    const Channel::Stats before = TrafficOf(training.client(0));
    for (int minibatch = 0; minibatch < 61; ++minibatch) EXPECT_TRUE(training.Step(0));
    EXPECT_EQ(training.status(0), absl::OkStatus());
    Channel::Stats traffic = TrafficOf(training.client(0));
    traffic.bytes_sent -= before.bytes_sent;
    traffic.bytes_received -= before.bytes_received;
    return traffic;
  }
};

TEST_P(AlgorithmTrafficTest, AWindowOfFiveSendsAndFetchesAFifth) {
  const Channel::Stats each = TrafficWith(1);
  const Channel::Stats windows = TrafficWith(5);
  EXPECT_NEAR(static_cast<double>(windows.bytes_sent) / static_cast<double>(each.bytes_sent), 0.2, 0.006);
  EXPECT_NEAR(static_cast<double>(windows.bytes_received) / static_cast<double>(each.bytes_received), 0.2, 0.006);
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, AlgorithmTrafficTest,
    ::testing::Values(Windowed{"hogwild", {.name = "hogwild"}}, Windowed{"downpour", {.name = "downpour"}},
                      Windowed{"downpour_add", {.name = "downpour", .parameters = {{"server_rule", "add"}}}},
                      Windowed{"downpour_easy", {.name = "downpour_easy"}}, Windowed{"agn", {.name = "agn"}},
                      Windowed{"adag", {.name = "adag"}}, Windowed{"dynsgd", {.name = "dynsgd"}},
                      Windowed{"ssp", {.name = "ssp"}}, Windowed{"sagn", {.name = "sagn"}},
                      Windowed{"easgd", {.name = "easgd"}}, Windowed{"aeasgd", {.name = "aeasgd"}},
                      Windowed{"aeamsgd", {.name = "aeamsgd"}}, Windowed{"diloco", {.name = "diloco"}}),
    [](const ::testing::TestParamInfo<Windowed>& info) { return info.param.name; });

}  // namespace
}  // namespace muster::algorithm_convergence_test
