// Synchronous and staleness-bounded training of several workers on one simulated loop: each waits for the others inside
// its step, while the loop runs their steps.
#include "muster/algo/algorithms/synchronous.h"

#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "muster/algo/algorithms/asynchronous.h"
#include "muster/algo/algorithms/bounded_staleness.h"
#include "muster/algo/sources/float_source.h"
#include "muster/base/log.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::synchronous_test {
namespace {

const std::vector<std::string> kTasks = {"worker:0", "worker:1", "worker:2"};
constexpr int kFeatures = 5;
const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {kFeatures}}, {.name = "b", .shape = {1}}};

// Linear regression with the mean squared error of a share of 24 rows: rows `first`, `first` + `stride`, …
class Regression final : public FloatSource {
 public:
  Regression(int first, int stride) : FloatSource(kVariables), first_(first), stride_(stride) {}
  absl::StatusOr<double> ComputeGradients() override {
    std::vector<double> sum(kFeatures + 1);
    double loss = 0;
    int rows = 0;
    for (int row = first_; row < 24; row += stride_, ++rows) {
      double error = values_[1][0] - Target(row);
      for (int i = 0; i < kFeatures; ++i) error += values_[0][i] * Feature(row, i);
      loss += error * error / 2;
      for (int i = 0; i < kFeatures; ++i) sum[i] += error * Feature(row, i);
      sum[kFeatures] += error;
    }
    for (int i = 0; i < kFeatures; ++i) gradients_[0][i] = static_cast<float>(sum[i] / rows);
    gradients_[1][0] = static_cast<float>(sum[kFeatures] / rows);
    return loss / rows;
  }
  std::vector<float> All() const {
    std::vector<float> all = values_[0];
    all.push_back(values_[1][0]);
    return all;
  }

 private:
  static double Feature(int row, int i) { return std::sin(row * 1.7 + i * 0.9); }
  static double Target(int row) { return 3 * Feature(row, 0) - 2 * Feature(row, 3) + 0.5; }

  const int first_;
  const int stride_;
};

template <typename Algorithm>
struct Trainee {
  template <typename Options>
  Trainee(SimulatedStore& store, const std::string& task, bool chief, int first, int stride, const RuleSpec& rule,
          Options options, ApplyChoice apply = ApplyChoice::kServer)
      : source(first, stride),
        algorithm(source,
                  *PlaceVariables(kVariables, static_cast<int>(store.addresses().size()), Placement::kRoundRobin, {}),
                  rule, options),
        client(store.Client(task, {.apply = apply})) {
    EXPECT_EQ(JoinToTrain(*client, algorithm.binding(), chief), absl::OkStatus());
    algorithm.Begin(*client);
    EXPECT_EQ(client->Pull(PullWhat::kEverything), absl::OkStatus());
  }
  void Step() { last = algorithm.Step(*client).value(); }

  Regression source;
  Algorithm algorithm;
  std::unique_ptr<StoreClient> client;
  StepResult last;
};

// Instances differ by the number of ps and by who applies the updates.
class SynchronousTest : public ::testing::TestWithParam<std::tuple<int, ApplyChoice>> {
 protected:
  static int num_ps() { return std::get<0>(GetParam()); }
  static ApplyChoice apply() { return std::get<1>(GetParam()); }
  static bool direct() { return apply() != ApplyChoice::kServer; }

  // Nobody renews the leases, and some wait for more than a minute.
  SimulatedStore store_{num_ps(), kTasks, {.lease = absl::Hours(1)}, nullptr, direct()};
};

TEST_P(SynchronousTest, ThreeWorkersAreOneProcessWithTheWholeBatch) {
  const RuleSpec rule = {.kind = RuleKind::kAdam, .learning_rate = 0.05};
  std::vector<std::unique_ptr<Trainee<SynchronousAlgorithm>>> workers;
  for (int i = 0; i < 3; ++i)
    workers.push_back(std::make_unique<Trainee<SynchronousAlgorithm>>(
        store_, kTasks[i], i == 0, i, 3, rule,
        SynchronousOptions{.replicas_to_aggregate = 3, .total_replicas = 3, .elastic = false}, apply()));
  SimulatedStore alone_store(1, {"worker:0"});
  Trainee<SynchronousAlgorithm> alone(alone_store, "worker:0", true, 0, 1, rule, SynchronousOptions{});
  for (int step = 1; step <= 100; ++step) {
    store_.loop.Post([&] { workers[1]->Step(); });
    store_.loop.Post([&] { workers[2]->Step(); });
    workers[0]->Step();
    alone.Step();
    for (const auto& worker : workers) {
      ASSERT_EQ(worker->last.global_step, step);
      for (int i = 0; i <= kFeatures; ++i)
        ASSERT_NEAR(worker->source.All()[i], alone.source.All()[i], 1e-6) << "element " << i << " in step " << step;
    }
  }
  EXPECT_EQ(workers[1]->algorithm.dropped(), 0);
  for (int ps = 0; ps < num_ps(); ++ps) {
    const auto status = nlohmann::json::parse(workers[0]->client->ps_calls().Status(ps).value());
    EXPECT_EQ(status["version"], 100);
    EXPECT_EQ(status["minibatches"], ps == 0 ? 300 : 0);
    EXPECT_EQ(status["clients"][1]["pushes"], 100);
    EXPECT_EQ(status["requests"].value("push_pull", 0) > 100, !direct()) << "nothing goes over the channel";
  }
}

TEST_P(SynchronousTest, WhoWaitsForWhomCanBeAsked) {
  std::vector<std::unique_ptr<Trainee<SynchronousAlgorithm>>> workers;
  for (int i = 0; i < 2; ++i)
    workers.push_back(std::make_unique<Trainee<SynchronousAlgorithm>>(
        store_, kTasks[i], i == 0, i, 2, RuleSpec{.learning_rate = 0.1},
        SynchronousOptions{.replicas_to_aggregate = 2, .total_replicas = 3}, apply()));
  nlohmann::json status;
  store_.loop.CallAt(store_.loop.Now() + absl::Milliseconds(50), [&] {
    status = nlohmann::json::parse(StatusJson(store_.service(0).MakeView()));
    workers[1]->Step();
  });
  workers[0]->Step();
  EXPECT_THAT(status["clients"][0]["waiting_for"].get<std::string>(),
              ::testing::AllOf(::testing::HasSubstr("round 0, which has 1 of 2 contributors"),
                               ::testing::HasSubstr(kTasks[1])));
  EXPECT_EQ(status["clients"][1]["waiting_for"], "");
}

TEST_P(SynchronousTest, WhoWaitsForLongSaysForWhomLessAndLessOften) {
  std::vector<std::unique_ptr<Trainee<SynchronousAlgorithm>>> workers;
  for (int i = 0; i < 2; ++i)
    workers.push_back(std::make_unique<Trainee<SynchronousAlgorithm>>(
        store_, kTasks[i], i == 0, i, 2, RuleSpec{.learning_rate = 0.1},
        SynchronousOptions{.replicas_to_aggregate = 2, .total_replicas = 3, .elastic = false}, apply()));
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(75), [&] { workers[1]->Step(); });
  workers[0]->Step();
  const std::string log = ::testing::internal::GetCapturedStderr();
  std::vector<std::string> waits;
  for (const absl::string_view line : absl::StrSplit(log, '\n'))
    if (absl::StrContains(line, "waits since")) waits.emplace_back(line);
  ASSERT_EQ(waits.size(), 3) << log;
  EXPECT_THAT(waits[0], ::testing::ContainsRegex("worker:0 waits since 1[0-4]s for round 0.*worker:1"));
  EXPECT_THAT(waits[1], ::testing::ContainsRegex("worker:0 waits since 2[0-9]s for round 0"));
  EXPECT_THAT(waits[2], ::testing::ContainsRegex("worker:0 waits since 4[0-9]s for round 0"));
}

TEST_P(SynchronousTest, AnElasticRunGoesOnWithoutTheDead) {
  std::vector<std::unique_ptr<Trainee<SynchronousAlgorithm>>> workers;
  for (int i = 0; i < 3; ++i)
    workers.push_back(std::make_unique<Trainee<SynchronousAlgorithm>>(
        store_, kTasks[i], i == 0, i, 3, RuleSpec{.learning_rate = 0.1},
        SynchronousOptions{.replicas_to_aggregate = 3, .total_replicas = 3}, apply()));
  workers[2].reset();
  for (int step = 1; step <= 5; ++step) {
    store_.loop.Post([&] { workers[1]->Step(); });
    workers[0]->Step();
    EXPECT_EQ(workers[0]->last.global_step, step);
  }
}

TEST_P(SynchronousTest, WithBoundZeroEverybodyTicksTogether) {
  std::vector<std::unique_ptr<Trainee<BoundedStalenessAlgorithm>>> workers;
  for (int i = 0; i < 3; ++i)
    workers.push_back(std::make_unique<Trainee<BoundedStalenessAlgorithm>>(store_, kTasks[i], i == 0, i, 3,
                                                                           RuleSpec{.learning_rate = 0.1}, 0));
  for (uint64_t step = 1; step <= 10; ++step) {
    store_.loop.Post([&] { workers[1]->Step(); });
    store_.loop.Post([&] { workers[2]->Step(); });
    workers[0]->Step();
    for (const auto& worker : workers) EXPECT_EQ(worker->client->clock(), step);
  }
  EXPECT_EQ(*workers[0]->client->ReadGlobalStep(), 30);
}

INSTANTIATE_TEST_SUITE_P(Ps, SynchronousTest,
                         ::testing::Combine(::testing::Values(1, 2),
                                            ::testing::Values(ApplyChoice::kServer, ApplyChoice::kAuto)));

}  // namespace
}  // namespace muster::synchronous_test
