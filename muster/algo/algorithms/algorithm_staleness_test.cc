// Staleness is measured correctly, and a commit is scaled by the staleness at which it is applied.
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/testing/scripted_training.h"

namespace muster::algorithm_staleness_test {
namespace {

using Parameter = std::tuple<AlgorithmChoice, int>;

// Instances differ by algorithm and number of workers.
class RoundRobinTest : public ::testing::TestWithParam<Parameter> {};

TEST_P(RoundRobinTest, TheStalenessOfEqualWorkersIsOneLessThanThereAre) {
  const auto& [choice, workers] = GetParam();
  ScriptedTraining training({.choice = choice, .workers = workers});
  ASSERT_EQ(training.JoinAll(), absl::OkStatus());
  const int windows = 12;
  const int window = choice.parameters.contains("window") ? std::stoi(choice.parameters.at("window")) : 1;
  for (int minibatch = 0; minibatch < windows * window; ++minibatch) {
    for (int worker = 0; worker < workers; ++worker) {
      ASSERT_TRUE(training.Step(worker));
      ASSERT_EQ(training.status(worker), absl::OkStatus());
      // An exchange is made by the first minibatch after its window.
      if (minibatch >= 2 * window) {
        EXPECT_EQ(training.result(worker).staleness, static_cast<uint64_t>(workers - 1)) << minibatch;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, RoundRobinTest,
    ::testing::Combine(::testing::Values(AlgorithmChoice{.name = "hogwild"},
                                         AlgorithmChoice{.name = "downpour", .parameters = {{"window", "3"}}},
                                         AlgorithmChoice{.name = "downpour_easy", .parameters = {{"window", "2"}}},
                                         AlgorithmChoice{.name = "agn", .parameters = {{"window", "3"}}},
                                         AlgorithmChoice{.name = "adag", .parameters = {{"window", "2"}}},
                                         AlgorithmChoice{.name = "dynsgd", .parameters = {{"window", "3"}}},
                                         AlgorithmChoice{.name = "staleness_aware"},
                                         AlgorithmChoice{.name = "ssp", .parameters = {{"bound", "1"}}},
                                         AlgorithmChoice{.name = "aeasgd", .parameters = {{"window", "2"}}},
                                         AlgorithmChoice{.name = "aeamsgd", .parameters = {{"window", "3"}}}),
                       ::testing::Values(2, 4)),
    [](const ::testing::TestParamInfo<Parameter>& info) {
      return absl::StrCat(std::get<0>(info.param).name, "_", std::get<1>(info.param), "_workers");
    });

struct Factor {
  std::string algorithm;
  std::string rule;            // "worker_rule" if the worker moves by it what is committed, or "server_rule"
  double (*of)(double stale);  // the published factor
};
void PrintTo(const Factor& factor, std::ostream* out) { *out << factor.algorithm; }

class FactorTest : public ::testing::TestWithParam<Factor> {};

// The staleness in a commit's own answer explains by how much it changed the global values, to the last digits,
// whichever workers committed before it and in whatever order.
TEST_P(FactorTest, ItIsThatOfTheVersionThatWasPulled) {
  constexpr double kRate = 0.1;
  ScriptedTraining training(
      {.choice = {.name = GetParam().algorithm,
                  .parameters = {{"window", "1"}, {GetParam().rule, absl::StrCat("sgd:learning_rate=", kRate)}}}});
  ASSERT_EQ(training.JoinAll(), absl::OkStatus());
  std::vector<int64_t> pulled(3);
  std::set<int64_t> seen;
  const std::vector<int> order = {0, 0, 1, 0, 2, 2, 1, 1, 0, 0, 0, 2, 1, 0, 1, 0, 1, 0, 0, 2};
  for (int commit = 0; commit < 60; ++commit) {
    const int worker = order[commit % order.size()];
    const std::vector<double> before = training.Global();
    ASSERT_TRUE(training.Step(worker));
    ASSERT_EQ(training.status(worker), absl::OkStatus());
    const int64_t staleness = commit - std::exchange(pulled[worker], commit + 1);
    ASSERT_EQ(training.result(worker).staleness, static_cast<uint64_t>(staleness));
    seen.insert(staleness);
    const double factor = GetParam().of(static_cast<double>(staleness));
    const std::vector<double> gradient = training.source(worker).Gradients();
    const std::vector<double> after = training.Global();
    for (size_t i = 0; i < after.size(); ++i)
      ASSERT_NEAR(after[i], before[i] - factor * kRate * gradient[i], 1e-12)
          << "commit " << commit << ", element " << i;
  }
  EXPECT_GE(seen.size(), 5u) << "the order is meant to bring different ones";
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, FactorTest,
    ::testing::Values(Factor{"dynsgd", "worker_rule", [](double stale) { return 1 / (stale + 1); }},
                      Factor{"staleness_aware", "server_rule", [](double stale) { return stale > 0 ? 1 / stale : 1; }},
                      Factor{"hogwild", "server_rule", [](double) { return 1.0; }}),
    [](const ::testing::TestParamInfo<Factor>& info) { return info.param.algorithm; });

}  // namespace
}  // namespace muster::algorithm_staleness_test
