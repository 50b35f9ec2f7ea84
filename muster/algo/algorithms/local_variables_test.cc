#include "muster/algo/algorithms/local_variables.h"

#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "muster/algo/sources/quadratic_source.h"
#include "muster/base/status_macros.h"
#include "muster/optim/rule_options.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::local_variables_test {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<float>;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {3}},
                                              {.name = "mean", .shape = {2}, .kind = VariableKind::kBuffer},
                                              {.name = "b", .shape = {2}}};
const std::vector<std::string> kTasks = {"chief:0", "worker:0"};

// One process. Each test sets what one run of its program does.
struct Trainee {
  Trainee(SimulatedStore& store, const std::string& task, const RuleSpec& rule = PlainAdd(),
          FaultScript* faults = nullptr)
      : algorithm(source,
                  *PlaceVariables(kVariables, static_cast<int>(store.addresses().size()), Placement::kRoundRobin, {}),
                  rule, [this] { return program(); }),
        client(faults != nullptr ? store.Client(task, *faults, {.apply = ApplyChoice::kAuto})
                                 : store.Client(task, {.apply = ApplyChoice::kAuto})) {}

  // Does what a session does, in its order.
  void Start(bool chief) {
    ASSERT_EQ(client->Join(chief), absl::OkStatus());
    client->Bind(algorithm.binding());
    if (chief) {
      ASSERT_EQ(client->Initialize(0, 0, nullptr), absl::OkStatus());
    }
    ASSERT_TRUE(client->AwaitReady(absl::InfiniteFuture()).ok());
    algorithm.Begin(*client);
    ASSERT_EQ(client->Pull(PullWhat::kEverything), absl::OkStatus());
  }
  absl::StatusOr<StepResult> Run(std::function<absl::Status()> run) {
    program = [run = std::move(run)]() -> absl::StatusOr<double> {
      RETURN_IF_ERROR(run());
      return 1.5;
    };
    return algorithm.Step(*client);
  }
  int64_t RunWell(std::function<absl::Status()> run) { return Run(std::move(run)).value().global_step; }
  // Makes steps of gradient descent on the local variables, which no other process sees.
  absl::Status Descend(int steps, float rate, bool accumulate = false) {
    for (int step = 0; step < steps; ++step) {
      RETURN_IF_ERROR(source.ComputeGradients().status());
      if (accumulate) RETURN_IF_ERROR(algorithm.AccumulateGradients());
      for (const size_t i : {size_t{0}, size_t{2}})
        for (size_t j = 0; j < source.values(i).size(); ++j)
          source.values(i)[j] -= rate * (source.values(i)[j] - QuadraticSource::Optimum(j));
    }
    return absl::OkStatus();
  }
  Values Global(size_t i) const {
    const ByteSpan bytes = algorithm.global(i);
    Values values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::function<absl::StatusOr<double>()> program;
  QuadraticSource source{kVariables};
  LocalVariablesAlgorithm algorithm;
  std::unique_ptr<StoreClient> client;
};

// Instances differ by the number of ps and by whether workers apply their own updates.
class LocalVariablesTest : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  SimulatedStore store_{std::get<0>(GetParam()), kTasks, kUnrenewedLease, nullptr, std::get<1>(GetParam())};
};

TEST_P(LocalVariablesTest, TheGlobalOnesBeginAsTheChiefsAndTheLocalOnesStayUntilTheyAreAssigned) {
  Trainee chief(store_, "chief:0");
  Trainee worker(store_, "worker:0");
  chief.source.values(0) = {1, 2, 3};
  chief.source.values(1) = {7, 8};
  worker.source.values(0) = {4, 5, 6};
  chief.Start(true);
  worker.Start(false);
  EXPECT_EQ(worker.source.values(0), (Values{4, 5, 6}));
  EXPECT_EQ(worker.Global(0), (Values{1, 2, 3}));
  worker.RunWell([&] { return worker.algorithm.AssignGlobalToLocal(); });
  EXPECT_EQ(worker.source.values(0), (Values{1, 2, 3}));
  EXPECT_EQ(worker.source.values(1), (Values{7, 8})) << "buffers too, the first time";
  worker.source.values(1) = {0, 1};
  worker.RunWell([&] { return worker.algorithm.PullGlobal(); });
  EXPECT_EQ(worker.source.values(1), (Values{0, 1})) << "a worker's own from then on";
}

TEST_P(LocalVariablesTest, TheDifferenceOfSomeLocalStepsIsAddedOnce) {
  Trainee chief(store_, "chief:0");
  Trainee worker(store_, "worker:0");
  chief.Start(true);
  worker.Start(false);
  Values one(3);  // what three local steps turn zeros into
  for (int step = 0; step < 3; ++step)
    for (size_t j = 0; j < 3; ++j) one[j] -= 0.5f * (one[j] - QuadraticSource::Optimum(j));

  for (Trainee* each : {&chief, &worker})
    each->RunWell([&] {
      RETURN_IF_ERROR(each->algorithm.PullGlobal());
      return each->Descend(3, 0.5f);
    });
  EXPECT_EQ(chief.source.values(0), one);
  EXPECT_EQ(worker.Global(0), Values(3)) << "no other process sees local steps";
  for (Trainee* each : {&chief, &worker})
    each->RunWell([&] { return each->algorithm.PushDelta({.minibatches = 3}).status(); });

  EXPECT_EQ(worker.source.values(0), one) << "a push leaves the local ones";
  for (size_t j = 0; j < 3; ++j) EXPECT_FLOAT_EQ(worker.Global(0)[j], 2 * one[j]) << "and brings the global ones";
  worker.RunWell([&] { return worker.algorithm.AssignGlobalToLocal(); });
  for (size_t j = 0; j < 3; ++j) EXPECT_FLOAT_EQ(worker.source.values(0)[j], 2 * one[j]);
}

TEST_P(LocalVariablesTest, TheNextDifferenceBeginsWhereTheLastWasPushed) {
  Trainee chief(store_, "chief:0");
  chief.Start(true);
  chief.RunWell([&]() -> absl::Status {
    RETURN_IF_ERROR(chief.algorithm.PullGlobal());
    chief.source.values(0) = {1, 1, 1};
    RETURN_IF_ERROR(chief.algorithm.PushDelta().status());
    chief.source.values(0) = {3, 3, 3};
    return chief.algorithm.PushDelta({.scale = 0.5}).status();
  });
  EXPECT_EQ(chief.Global(0), (Values{2, 2, 2})) << "1, then half of 2";
  EXPECT_EQ(chief.source.values(0), (Values{3, 3, 3}));
}

TEST_P(LocalVariablesTest, GradientsOfSeveralStepsArePushedAsTheirMean) {
  Trainee chief(store_, "chief:0", Sgd({.learning_rate = 0.1}));
  chief.Start(true);
  chief.source.values(0) = {0, 0, 0};
  // Local steps with rate 0.5: the gradients are -(j + 1), -(j + 1) / 2.
  chief.RunWell([&] {
    RETURN_IF_ERROR(chief.Descend(2, 0.5f, /*accumulate=*/true));
    return chief.algorithm.PushGradients({.scale = 0.5, .minibatches = 2}).status();
  });
  for (size_t j = 0; j < 3; ++j) EXPECT_FLOAT_EQ(chief.Global(0)[j], 0.1f * 0.75f * (j + 1)) << j;
  // The sum is used up; without one the source's current gradients are pushed.
  chief.RunWell([&] { return chief.algorithm.PushGradients().status(); });
  for (size_t j = 0; j < 3; ++j) EXPECT_FLOAT_EQ(chief.Global(0)[j], 0.1f * 1.25f * (j + 1)) << j;
}

TEST_P(LocalVariablesTest, ARunThatFailsForgetsWhatItHasAccumulated) {
  Trainee chief(store_, "chief:0", Sgd({.learning_rate = 1}));
  chief.Start(true);
  const auto failed = chief.Run([&] {
    RETURN_IF_ERROR(chief.Descend(5, 0, /*accumulate=*/true));
    return absl::AbortedError("a ps was restarted");
  });
  EXPECT_EQ(failed.status(), absl::AbortedError("a ps was restarted"));
  chief.RunWell([&] {
    RETURN_IF_ERROR(chief.Descend(1, 0, /*accumulate=*/true));
    return chief.algorithm.PushGradients().status();
  });
  EXPECT_EQ(chief.Global(0), (Values{1, 2, 3}));
}

TEST_P(LocalVariablesTest, RunsWithoutAPushDontCountButSeeWhatOthersCounted) {
  Trainee chief(store_, "chief:0");
  Trainee worker(store_, "worker:0");
  chief.Start(true);
  worker.Start(false);
  const auto push = [&] {
    RETURN_IF_ERROR(chief.algorithm.PullGlobal());
    return chief.algorithm.PushDelta().status();
  };
  EXPECT_EQ(chief.RunWell(push), 1);
  EXPECT_EQ(chief.RunWell(push), 2);
  const auto local = worker.Run([&] { return worker.Descend(4, 0.5f); });
  ASSERT_TRUE(local.ok());
  EXPECT_EQ(local->global_step, 2);
  EXPECT_EQ(local->loss, 1.5);
  EXPECT_EQ(chief.RunWell([&] { return chief.algorithm.PushDelta({.minibatches = 0}).status(); }), 2)
      << "a push of no minibatch isn't counted";
}

TEST_P(LocalVariablesTest, TheChiefsBuffersArePublishedWithAPush) {
  Trainee chief(store_, "chief:0");
  Trainee worker(store_, "worker:0");
  chief.Start(true);
  worker.Start(false);
  for (Trainee* each : {&chief, &worker})
    each->RunWell([&] {
      RETURN_IF_ERROR(each->algorithm.PullGlobal());
      each->source.values(1) = each == &chief ? Values{1, 2} : Values{8, 9};
      return each->algorithm.PushDelta().status();
    });
  ASSERT_EQ(chief.client->Pull(PullWhat::kEverything), absl::OkStatus());
  EXPECT_EQ(chief.Global(1), (Values{1, 2}));
}

TEST_P(LocalVariablesTest, WhatMakesNoSenseIsRefusedWithTheWayOut) {
  Trainee chief(store_, "chief:0", Sgd());
  chief.Start(true);
  EXPECT_THAT(std::string(chief.algorithm.PullGlobal().message()), HasSubstr("outside a run"));
  EXPECT_THAT(std::string(chief.algorithm.PushGradients().status().message()), HasSubstr("outside a run"));
  EXPECT_THAT(std::string(chief.Run([&] { return chief.algorithm.PushDelta().status(); }).status().message()),
              HasSubstr("PullGlobal"));
  const absl::Status other_rule = chief
                                      .Run([&] {
                                        RETURN_IF_ERROR(chief.algorithm.PullGlobal());
                                        return chief.algorithm.PushDelta().status();
                                      })
                                      .status();
  EXPECT_EQ(other_rule.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other_rule.message()), HasSubstr("that of variable 'w' is sgd"));
}

TEST_P(LocalVariablesTest, AGradientThatWouldBeAddedIsRefused) {
  Trainee chief(store_, "chief:0", PlainAdd());
  chief.Start(true);
  const auto push = [&](double scale) {
    return chief
        .Run([&] {
          RETURN_IF_ERROR(chief.source.ComputeGradients().status());
          return chief.algorithm.PushGradients({.scale = scale}).status();
        })
        .status();
  };
  EXPECT_EQ(push(0.5).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(push(-0.5), absl::OkStatus());
  EXPECT_EQ(chief.Global(0), (Values{0.5, 1, 1.5}));
}

INSTANTIATE_TEST_SUITE_P(Ps, LocalVariablesTest, ::testing::Combine(::testing::Values(1, 2), ::testing::Bool()));

// If an answer is lost or a request comes twice, the difference is still added to the global variables only once.
TEST(LocalVariablesFaultTest, EachPushIsAppliedOnce) {
  for (const FaultKind kind : {FaultKind::kCutReply, FaultKind::kCutRequest, FaultKind::kDuplicateRequest}) {
    SimulatedStore store(2, kTasks);
    FaultScript script;
    Trainee chief(store, "chief:0", PlainAdd(), &script);
    chief.Start(true);
    const uint64_t before = script.met();
    script.Add({.kind = kind, .times = 2});
    const auto push = [&]() -> absl::Status {
      RETURN_IF_ERROR(chief.algorithm.AssignGlobalToLocal());
      for (float& value : chief.source.values(0)) value += 1;
      return chief.algorithm.PushDelta().status();
    };
    for (int run = 1; run <= 3; ++run) EXPECT_EQ(chief.RunWell(push), run);
    EXPECT_EQ(script.met() - before, 2u);
    EXPECT_EQ(chief.Global(0), (Values{3, 3, 3})) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace muster::local_variables_test
