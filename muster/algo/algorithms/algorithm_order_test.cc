// Deterministic runs: commits are admitted in the workers' order, so the values are the same, bit for bit, whichever
// worker is ready first.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/algo/testing/scripted_training.h"

namespace muster::algorithm_order_test {
namespace {

constexpr int kWorkers = 3;
// The worker that begins a minibatch first, second and third: one script per row, one round per column, repeated.
constexpr std::array<std::array<std::array<int, kWorkers>, 4>, 2> kScripts = {
    {{{{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {2, 0, 1}}}, {{{2, 1, 0}, {1, 2, 0}, {2, 0, 1}, {0, 1, 2}}}}};

struct Outcome {
  std::string wrong;  // empty if nothing is wrong
  std::vector<double> global;
  std::vector<std::vector<double>> own;
  int64_t global_step = 0;
};

// Runs ten rounds, in each of which every worker makes the minibatches of one commit.
Outcome Train(AlgorithmChoice choice, bool deterministic, int script) {
  choice.deterministic = deterministic;
  const int window = choice.parameters.contains("window") ? std::stoi(choice.parameters.at("window")) : 1;
  ScriptedTraining training({.choice = choice, .workers = kWorkers});
  Outcome outcome;
  if (const absl::Status joined = training.JoinAll(); !joined.ok()) {
    outcome.wrong = joined.ToString();
    return outcome;
  }
  for (int round = 0; round < 10 * window; ++round) {
    for (const int worker : kScripts[script][round % 4]) training.Start(worker);
    if (!training.Drive(absl::Minutes(1))) outcome.wrong = "a worker waits for ever";
    if (!outcome.wrong.empty()) return outcome;
  }
  for (const int worker : kScripts[script][0]) training.Finish(worker);
  if (!training.Drive(absl::Minutes(1))) outcome.wrong = "a worker waits for ever at the end";
  for (int worker = 0; worker < kWorkers; ++worker) {
    if (!training.status(worker).ok()) outcome.wrong = training.status(worker).ToString();
    outcome.own.push_back(training.source(worker).Values());
  }
  outcome.global = training.Global();
  outcome.global_step = training.global_step();
  return outcome;
}

class AlgorithmOrderTest : public ::testing::TestWithParam<AlgorithmChoice> {};

TEST_P(AlgorithmOrderTest, TheSameComesOfItWhoeverIsFirst) {
  const Outcome one = Train(GetParam(), /*deterministic=*/true, 0);
  const Outcome other = Train(GetParam(), /*deterministic=*/true, 1);
  ASSERT_EQ(one.wrong, "");
  ASSERT_EQ(other.wrong, "");
  EXPECT_GE(one.global_step, 10);
  EXPECT_EQ(one.global_step, other.global_step);
  EXPECT_EQ(one.global, other.global);
  EXPECT_EQ(one.own, other.own);
}

// Without the fixed order the test above would fail.
TEST_P(AlgorithmOrderTest, WithoutItTheOrderShows) {
  const Outcome one = Train(GetParam(), /*deterministic=*/false, 0);
  const Outcome other = Train(GetParam(), /*deterministic=*/false, 1);
  ASSERT_EQ(one.wrong, "");
  ASSERT_EQ(other.wrong, "");
  EXPECT_EQ(one.global_step, other.global_step);
  EXPECT_NE(one.global, other.global);
}

// When one worker's input ends first, it needn't wait, as no round comes without it, and the others' runs end, too.
TEST(SynchronousOrderTest, WhoEndsFirstWaitsForNobody) {
  ScriptedTraining training({.choice = {.name = "synchronous", .deterministic = true}, .workers = kWorkers});
  ASSERT_EQ(training.JoinAll(), absl::OkStatus());
  for (int worker = 0; worker < kWorkers; ++worker) training.Start(worker);
  ASSERT_TRUE(training.Drive());
  for (int worker = 1; worker < kWorkers; ++worker) training.Start(worker);
  EXPECT_FALSE(training.Drive());
  training.Finish(0);
  training.Drive();
  ASSERT_FALSE(training.busy(0));
  EXPECT_EQ(training.status(0), absl::OkStatus());
  ASSERT_EQ(training.client(0).Done(), absl::OkStatus());
  ASSERT_TRUE(training.Drive());
  for (int worker = 1; worker < kWorkers; ++worker) EXPECT_TRUE(absl::IsCancelled(training.status(worker))) << worker;
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, AlgorithmOrderTest,
    ::testing::Values(
        AlgorithmChoice{.name = "hogwild", .parameters = {{"server_rule", "momentum:learning_rate=0.1"}}},
        AlgorithmChoice{.name = "downpour", .parameters = {{"window", "2"}}},
        AlgorithmChoice{.name = "dynsgd", .parameters = {{"window", "2"}, {"worker_rule", "sgd:learning_rate=0.1"}}},
        AlgorithmChoice{.name = "aeasgd", .parameters = {{"window", "2"}, {"worker_rule", "sgd:learning_rate=0.1"}}},
        AlgorithmChoice{.name = "synchronous", .parameters = {{"server_rule", "sgd:learning_rate=0.1"}}}),
    [](const ::testing::TestParamInfo<AlgorithmChoice>& info) { return info.param.name; });

}  // namespace
}  // namespace muster::algorithm_order_test
