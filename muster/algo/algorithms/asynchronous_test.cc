#include "muster/algo/algorithms/asynchronous.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "muster/algo/sources/quadratic_source.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::asynchronous_test {
namespace {

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {3, 4}},
                                              {.name = "frozen", .shape = {2}, .kind = VariableKind::kFrozen},
                                              {.name = "mean", .shape = {2}, .kind = VariableKind::kBuffer},
                                              {.name = "b", .shape = {4}}};

// One process with its model, its algorithm and its client.
struct Trainee {
  // Updates go through the ps, or past them where they give their memory away.
  Trainee(SimulatedStore& store, const std::string& task, bool chief, const RuleSpec& rule)
      : source(kVariables),
        algorithm(source,
                  *PlaceVariables(kVariables, static_cast<int>(store.addresses().size()), Placement::kGreedyBySize, {}),
                  rule),
        client(store.Client(task, {.apply = ApplyChoice::kAuto})) {
    EXPECT_EQ(JoinToTrain(*client, algorithm.binding(), chief), absl::OkStatus());
  }
  StepResult Step() { return algorithm.Step(*client).value(); }

  QuadraticSource source;
  AsynchronousAlgorithm algorithm;
  std::unique_ptr<StoreClient> client;
};

// Instances differ by the number of ps and by whether workers apply their own updates.
class AsynchronousTest : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  SimulatedStore Store(std::vector<std::string> workers) const {
    return SimulatedStore(std::get<0>(GetParam()), std::move(workers), kUnrenewedLease, nullptr,
                          std::get<1>(GetParam()));
  }
};

TEST_P(AsynchronousTest, OneWorkerIsPlainGradientDescent) {
  SimulatedStore store = Store({"worker:0"});
  Trainee trainee(store, "worker:0", true, {.learning_rate = 0.25});
  std::vector<float> w(12);
  for (int step = 1; step <= 20; ++step) {
    double loss = 0;
    for (size_t i = 0; i < 12; ++i) loss += 0.5 * (w[i] - (i + 1.0)) * (w[i] - (i + 1.0));
    for (size_t i = 0; i < 4; ++i) loss += 0.5 * (w[i] - (i + 1.0)) * (w[i] - (i + 1.0));
    const StepResult result = trainee.Step();
    EXPECT_NEAR(result.loss, loss, 1e-4 * loss) << step;
    EXPECT_EQ(result.global_step, step);
    EXPECT_EQ(result.staleness, 0u);
    for (size_t i = 0; i < 12; ++i) w[i] -= 0.25f * (w[i] - static_cast<float>(i + 1));
    EXPECT_EQ(trainee.source.values(0), w);
    EXPECT_EQ(trainee.source.values(3), std::vector<float>(w.begin(), w.begin() + 4));
  }
  EXPECT_EQ(trainee.source.values(1), std::vector<float>(2)) << "frozen";
}

TEST_P(AsynchronousTest, TwoWorkersShareTheModelAndFindTheOptimum) {
  SimulatedStore store = Store({"chief:0", "worker:0"});
  Trainee chief(store, "chief:0", true, {.kind = RuleKind::kMomentum, .learning_rate = 0.1, .momentum = 0.5});
  Trainee worker(store, "worker:0", false, {.kind = RuleKind::kMomentum, .learning_rate = 0.1, .momentum = 0.5});
  StepResult last;
  for (int step = 0; step < 400; ++step) last = (step % 2 == 0 ? chief : worker).Step();
  EXPECT_EQ(last.global_step, 400);
  EXPECT_EQ(last.staleness, 1u);
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(worker.source.values(0)[i], i + 1, 0.01);
}

TEST_P(AsynchronousTest, OnlyTheChiefsBuffersArePublished) {
  SimulatedStore store = Store({"chief:0", "worker:0"});
  Trainee chief(store, "chief:0", true, {});
  Trainee worker(store, "worker:0", false, {});
  chief.source.values(2) = {1, 2};
  worker.source.values(2) = {8, 9};
  chief.Step();
  worker.Step();
  EXPECT_EQ(worker.source.values(2), (std::vector<float>{8, 9})) << "a step leaves a worker its own";
  ASSERT_EQ(worker.client->Pull(PullWhat::kEverything), absl::OkStatus());
  EXPECT_EQ(worker.source.values(2), (std::vector<float>{1, 2}));
}

TEST_P(AsynchronousTest, AnErrorOfTheSourceEndsTheStepBeforeAnythingIsPushed) {
  SimulatedStore store = Store({"worker:0"});
  Trainee trainee(store, "worker:0", true, {});
  trainee.source.on_step = [](double) -> absl::StatusOr<double> { return absl::InternalError("the user's own"); };
  EXPECT_EQ(trainee.algorithm.Step(*trainee.client).status(), absl::InternalError("the user's own"));
  EXPECT_EQ(*trainee.client->ReadGlobalStep(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ps, AsynchronousTest, ::testing::Combine(::testing::Values(1, 2, 5), ::testing::Bool()));

}  // namespace
}  // namespace muster::asynchronous_test
