// Data-parallel training without ps: nodes of one cluster in the threads of this process, compared with one process
// that has all their data.
#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/algo/algorithms/all_reduce.h"
#include "muster/algo/algorithms/asynchronous.h"
#include "muster/algo/sources/quadratic_source.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/base/wrong_configuration.h"
#include "muster/collective/testing/group_in_threads.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/node/node.h"

namespace muster::all_reduce_training_test {
namespace {

using ::testing::HasSubstr;

constexpr size_t kWidth = 7;
constexpr size_t kExamples = 6;  // in one minibatch of all workers together

// Linear regression on the examples [first, last) of every minibatch. A second variable has a gradient only if example
// 0 is among them; a third never has one.
class RegressionSource final : public FloatSource {
 public:
  RegressionSource(size_t first, size_t last)
      : FloatSource({{.name = "w", .shape = {kWidth}}, {.name = "b", .shape = {1}}, {.name = "idle", .shape = {2}}},
                    0.5F),
        first_(first),
        last_(last) {}

  absl::StatusOr<double> ComputeGradients() override {
    if (on_step) RETURN_IF_ERROR(on_step());
    for (auto& gradient : gradients_) std::fill(gradient.begin(), gradient.end(), 0.0F);
    const auto count = static_cast<float>(last_ - first_);
    float loss = 0;
    for (size_t example = first_; example < last_; ++example) {
      float error = -Input(example, kWidth);
      for (size_t j = 0; j < kWidth; ++j) error += values_[0][j] * Input(example, j);
      if (example == 0) error += values_[1][0];
      for (size_t j = 0; j < kWidth; ++j) gradients_[0][j] += error * Input(example, j) / count;
      if (example == 0) gradients_[1][0] += error / count;
      loss += error * error / 2 / count;
    }
    ++minibatch_;
    Announce();
    if (on_announced) RETURN_IF_ERROR(on_announced());
    return loss;
  }
  ByteSpan gradient(size_t i) override {
    return i == 2 || (i == 1 && first_ > 0) ? ByteSpan() : FloatSource::gradient(i);
  }

  std::function<absl::Status()> on_step;
  std::function<absl::Status()> on_announced;  // in the same step, later

 private:
  float Input(size_t example, size_t j) const {
    return std::sin(static_cast<float>(1 + example * 31 + j * 7 + minibatch_ * 13));
  }

  const size_t first_;
  const size_t last_;
  size_t minibatch_ = 0;
};

TaskConfig TaskOf(const std::vector<std::string>& workers, int index, const std::string& ps = "") {
  const std::string hosts = absl::StrCat("\"worker\": [\"", absl::StrJoin(workers, "\", \""), "\"]",
                                         ps.empty() ? "" : absl::StrCat(", \"ps\": [\"", ps, "\"]"));
  auto task =
      ResolveTaskConfig({.tf_config = absl::StrCat("{\"cluster\": {", hosts,
                                                   "}, \"task\": {\"type\": \"worker\", \"index\": ", index, "}}"),
                         .flags = {}});
  MUSTER_CHECK(task.ok());
  return *std::move(task);
}

struct Ended {
  absl::Status status;
  absl::Status after_failure;  // of one more step
  std::vector<std::vector<float>> values;
  int64_t global_step = 0;
};

struct RunOptions {
  int64_t last_step = 20;
  std::string directory;
  OptimizerSpec optimizer = RuleSpec{.kind = RuleKind::kAdam, .learning_rate = 0.05};
  std::function<absl::Status(int worker)> on_step;
  std::function<absl::Status(int worker)> on_announced;
  AllReduceOptions all_reduce;
  std::vector<std::shared_ptr<SessionHook>> hooks;
};

// Leaves the floating-point mode of the thread that runs the tests unchanged.
NodeOptions Unflushed() { return {.flush_denormals = false}; }

// The life of one worker; `workers` is empty for a single process.
Ended Train(const std::vector<std::string>& workers, int index, const RunOptions& options) {
  const size_t each = kExamples / std::max<size_t>(1, workers.size());
  RegressionSource source(index * each, (index + 1) * each);
  if (options.on_step) source.on_step = [&options, index] { return options.on_step(index); };
  if (options.on_announced) source.on_announced = [&options, index] { return options.on_announced(index); };
  Ended ended;
  auto node = Node::Create(workers.empty() ? TaskConfig() : TaskOf(workers, index), Unflushed());
  if (!node.ok()) return {node.status()};
  // The reference: the plain training of one process.
  AsynchronousAlgorithm plain(source, *PlaceVariables(source.variables(), 1, Placement::kRoundRobin, {}),
                              options.optimizer);
  // Workers that wait in vain for one that has failed must end before the test program's time limit does: only then is
  // its error shown.
  AllReduceOptions all_reduce_options = options.all_reduce;
  all_reduce_options.patience = absl::Minutes(1);
  AllReduceAlgorithm all_reduce(
      source, *PlaceVariables(source.variables(), 1, Placement::kRoundRobin, {}), options.optimizer,
      [&node](absl::Time deadline) -> absl::StatusOr<std::unique_ptr<Collective>> {
        const auto group = (*node)->MakeGroupOptions();
        if (!group.ok()) return group.status();
        return JoinGroup(*group, deadline);
      },
      all_reduce_options);
  (*node)->SetAlgorithm(workers.empty() ? static_cast<Algorithm*>(&plain) : &all_reduce);
  auto environment = (*node)->MakeSessionEnvironment();
  if (!environment.ok()) return {environment.status()};
  std::vector<std::shared_ptr<SessionHook>> hooks = {StopAtStep({.last_step = options.last_step})};
  if (index == 0) hooks.insert(hooks.end(), options.hooks.begin(), options.hooks.end());
  Session session(*environment,
                  {.checkpoint_dir = options.directory, .save_checkpoint_steps = 5, .log_step_count_steps = 0}, hooks);
  ended.status = session.Start();
  while (ended.status.ok() && !session.ShouldStop()) ended.status = session.Run();
  if (!ended.status.ok()) {
    LogInfo("worker ", index, " ends: ", ended.status.ToString());
    ended.after_failure = session.Run();
  }
  if (ended.status.ok()) ended.status = session.Close();
  ended.global_step = session.global_step();
  for (size_t i = 0; i < source.variables().size(); ++i) {
    const auto* floats = reinterpret_cast<const float*>(source.value(i).data());
    ended.values.emplace_back(floats, &floats[source.value(i).size() / sizeof(float)]);
  }
  return ended;
}

std::vector<Ended> TrainTogether(int size, const RunOptions& options) {
  const std::vector<std::string> workers = FreeAddresses(size);
  std::vector<Ended> ends(size);
  SetUpLog("");  // before there are threads: the thread sanitizer can't see how the log library makes its logger
  std::vector<std::thread> threads;
  for (int index = 0; index < size; ++index)
    threads.emplace_back([&, index] { ends[index] = Train(workers, index, options); });
  for (std::thread& thread : threads) thread.join();
  return ends;
}

void ExpectTheSame(const std::vector<std::vector<float>>& values, const std::vector<std::vector<float>>& expected,
                   float tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = 0; j < values[i].size(); ++j)
      EXPECT_NEAR(values[i][j], expected[i][j], tolerance) << "element " << j << " of variable " << i;
}

class AllReduceTrainingTest : public ::testing::TestWithParam<int> {};

TEST_P(AllReduceTrainingTest, IsOneProcessWithAllTheDataAndTheCopiesAreTheSameInEveryBit) {
  const Ended alone = Train({}, 0, {});
  ASSERT_EQ(alone.status, absl::OkStatus());
  const std::vector<Ended> together = TrainTogether(GetParam(), {});
  for (const Ended& one : together) {
    ASSERT_EQ(one.status, absl::OkStatus());
    EXPECT_EQ(one.global_step, 20);
    EXPECT_EQ(one.values, together[0].values);
  }
  ExpectTheSame(together[0].values, alone.values, 1e-6F);
  EXPECT_EQ(alone.values[2], std::vector<float>(2, 0.5F)) << "nobody has a gradient of it";
  EXPECT_EQ(together[0].values[2], std::vector<float>(2, 0.5F)) << "nobody has a gradient of it";
}

// Computes w and b as RegressionSource and the rule do, independently and in doubles.
std::vector<double> Simulated(int steps, double rate, double momentum) {
  std::vector<double> values(kWidth + 1, 0.5);
  std::vector<double> velocities(kWidth + 1, 0);
  for (int step = 0; step < steps; ++step) {
    std::vector<double> mean(kWidth + 1, 0);
    for (int example = 0; example < static_cast<int>(kExamples); ++example) {
      std::vector<double> inputs;
      for (int j = 0; j <= static_cast<int>(kWidth); ++j)
        inputs.push_back(std::sin(static_cast<float>(1 + example * 31 + j * 7 + step * 13)));
      const double target = inputs.back();
      inputs.back() = example == 0 ? 1 : 0;  // b's
      double error = -target;
      for (size_t j = 0; j < inputs.size(); ++j) error += values[j] * inputs[j];
      for (size_t j = 0; j < inputs.size(); ++j) mean[j] += error * inputs[j] / kExamples;
    }
    for (size_t j = 0; j < mean.size(); ++j) {
      velocities[j] = momentum * velocities[j] + mean[j];
      values[j] -= rate * velocities[j];
    }
  }
  return values;
}

TEST_P(AllReduceTrainingTest, EveryCopyIsThatOfTheEquations) {
  constexpr int kSteps = 60;
  const std::vector<double> simulated = Simulated(kSteps, 0.05, 0.9);
  const std::vector<Ended> together = TrainTogether(
      GetParam(), {.last_step = kSteps,
                   .optimizer = RuleSpec{.kind = RuleKind::kMomentum, .learning_rate = 0.05, .momentum = 0.9}});
  for (const Ended& one : together) {
    ASSERT_EQ(one.status, absl::OkStatus());
    EXPECT_EQ(one.global_step, kSteps);
    // Training is in float32, whose last bit is 6e-8 at 1 and is rounded in every step.
    for (size_t j = 0; j < kWidth; ++j) EXPECT_NEAR(one.values[0][j], simulated[j], 1e-6) << j;
    EXPECT_NEAR(one.values[1][0], simulated[kWidth], 1e-6);
  }
  const std::vector<double> slower = Simulated(kSteps, 0.0499, 0.9);
  double largest = 0;
  for (size_t j = 0; j < slower.size(); ++j) largest = std::max(largest, std::abs(slower[j] - simulated[j]));
  EXPECT_GT(largest, 2e-5) << "a wrong rate would be seen";
}

TEST_P(AllReduceTrainingTest, WhenGradientsAreAveragedChangesNoBit) {
  const auto train = [](ReduceWhen when) {
    return TrainTogether(GetParam(), {.all_reduce = {.bucket_bytes = 1, .when = when}});
  };
  const std::vector<Ended> after = train(ReduceWhen::kAfter);
  for (const ReduceWhen when : {ReduceWhen::kAuto, ReduceWhen::kWithin, ReduceWhen::kBeside}) {
    const std::vector<Ended> overlapped = train(when);
    for (int rank = 0; rank < GetParam(); ++rank) {
      EXPECT_EQ(overlapped[rank].status, absl::OkStatus());
      EXPECT_EQ(overlapped[rank].values, after[rank].values);
    }
  }
}

// Records the gradient of "w" in each step.
class GradientRecorder final : public SessionHook {
 public:
  absl::Status BeforeRun(RunContext& context) override {
    context.ObserveGradients([this](const GradientView& view) {
      const ByteSpan bytes = view.gradient(0);
      std::vector<float> gradient(bytes.size() / sizeof(float));
      std::memcpy(gradient.data(), bytes.data(), bytes.size());
      gradients.push_back(gradient);
      idle_is_empty = idle_is_empty && view.gradient(2).empty();
    });
    return absl::OkStatus();
  }
  std::vector<std::vector<float>> gradients;
  bool idle_is_empty = true;
};

TEST_P(AllReduceTrainingTest, WhoLooksAtGradientsSeesTheMeanOfAll) {
  for (const ReduceWhen when : {ReduceWhen::kAfter, ReduceWhen::kWithin, ReduceWhen::kBeside}) {
    const auto alone = std::make_shared<GradientRecorder>();
    const auto together = std::make_shared<GradientRecorder>();
    ASSERT_EQ(Train({}, 0, {.last_step = 5, .hooks = {alone}}).status, absl::OkStatus());
    ASSERT_EQ(TrainTogether(GetParam(), {.last_step = 5, .all_reduce = {.when = when}, .hooks = {together}})[0].status,
              absl::OkStatus());
    ASSERT_EQ(together->gradients.size(), 5u);
    ExpectTheSame(together->gradients, alone->gradients, 1e-5F);
    EXPECT_TRUE(together->idle_is_empty);
  }
}

TEST_P(AllReduceTrainingTest, ACheckpointGoesOnWithValuesAndSlotsOnAllRanks) {
  const ScratchFolder scratch;
  const std::string directory = scratch / "together", reference = scratch / "alone";
  ASSERT_EQ(TrainTogether(GetParam(), {.last_step = 10, .directory = directory})[0].status, absl::OkStatus());
  const std::vector<Ended> resumed = TrainTogether(GetParam(), {.last_step = 14, .directory = directory});
  // The minibatches start over, because the input's position isn't kept here; the reference's must start over, too.
  ASSERT_EQ(Train({}, 0, {.last_step = 10, .directory = reference}).status, absl::OkStatus());
  const Ended alone = Train({}, 0, {.last_step = 14, .directory = reference});
  for (const Ended& one : resumed) {
    ASSERT_EQ(one.status, absl::OkStatus());
    EXPECT_EQ(one.global_step, 14);
    EXPECT_EQ(one.values, resumed[0].values);
  }
  ExpectTheSame(resumed[0].values, alone.values, 1e-6F);
}

INSTANTIATE_TEST_SUITE_P(Workers, AllReduceTrainingTest, ::testing::Values(2, 3),
                         [](const auto& info) { return std::to_string(info.param); });

TEST(AllReduceFailureTest, AWorkerThatFailsEndsTheOthersWithAnErrorWorthTryingAgain) {
  std::atomic<int> steps{0};
  const std::vector<Ended> ends = TrainTogether(2, {.on_step = [&](int worker) {
                                                  if (worker == 1 && ++steps == 7)
                                                    return absl::DataLossError("its data are gone");
                                                  return absl::OkStatus();
                                                }});
  EXPECT_EQ(ends[1].status.code(), absl::StatusCode::kDataLoss) << ends[1].status;
  EXPECT_EQ(ends[0].status.code(), absl::StatusCode::kUnavailable) << ends[0].status;
  EXPECT_THAT(ends[0].status.message(), HasSubstr("worker:1"));
  EXPECT_THAT(std::string(ends[0].status.message()), HasSubstr("at global step 7, of which all are lost"));
}

TEST(AllReduceFailureTest, WhoIsLeftSaysHowManyStepsAreLost) {
  const ScratchFolder scratch;
  std::atomic<int> steps{0};
  const std::vector<Ended> ends = TrainTogether(2, {.directory = scratch.path(), .on_step = [&](int worker) {
                                                      if (worker == 1 && ++steps == 9)
                                                        return absl::DataLossError("its data are gone");
                                                      return absl::OkStatus();
                                                    }});
  // The worker that failed makes one more step, successfully, before it ends. Saved at 0 and 5.
  EXPECT_THAT(std::string(ends[0].status.message()), HasSubstr("at global step 9, of which 4 are lost"));
  EXPECT_THAT(std::string(ends[0].status.message()), HasSubstr(scratch / "model.ckpt-5"));
}

// Some of its gradients have been averaged already: its next request would meet a different one on the other side.
TEST(AllReduceFailureTest, AWorkerWhoseStepFailsInItsMiddleCannotGoOn) {
  std::atomic<int> steps{0};
  const std::vector<Ended> ends = TrainTogether(2, {.on_announced =
                                                        [&](int worker) {
                                                          if (worker == 0 && ++steps == 7)
                                                            return absl::DataLossError("its data are gone");
                                                          return absl::OkStatus();
                                                        },
                                                    .all_reduce = {.bucket_bytes = 1, .when = ReduceWhen::kWithin}});
  EXPECT_EQ(ends[0].status.code(), absl::StatusCode::kDataLoss) << ends[0].status;
  EXPECT_EQ(ends[0].after_failure.code(), absl::StatusCode::kFailedPrecondition) << ends[0].after_failure;
  EXPECT_THAT(ends[0].after_failure.message(), HasSubstr("in its middle"));
  EXPECT_EQ(ends[1].status.code(), absl::StatusCode::kUnavailable) << ends[1].status;
  EXPECT_THAT(ends[1].status.message(), HasSubstr("worker:0"));
}

TEST(AllReduceFailureTest, AStepBeforeTheBeginSaysSo) {
  QuadraticSource source({{.name = "w", .shape = {3}}});
  AllReduceAlgorithm algorithm(source, *PlaceVariables(source.variables(), 1, Placement::kRoundRobin, {}),
                               RuleSpec{.learning_rate = 0.1}, nullptr);
  auto node = Node::Create(TaskOf({"localhost:1", "localhost:2"}, 0), Unflushed()).value();
  node->SetAlgorithm(&algorithm);
  const auto environment = node->MakeSessionEnvironment().value();
  const absl::Status status = algorithm.Step(*environment.client).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("Begin"));
}

TEST(AllReduceFailureTest, AnotherModelIsRefused) {
  const std::vector<std::string> workers = FreeAddresses(2);
  Ended chief, other;
  SetUpLog("");
  std::thread first([&] { chief = Train(workers, 0, {}); });
  std::thread second([&] { other = Train(workers, 1, {.optimizer = RuleSpec{.learning_rate = 0.05}}); });
  first.join();
  second.join();
  EXPECT_EQ(other.status.code(), absl::StatusCode::kFailedPrecondition) << other.status;
  EXPECT_EQ(chief.status.code(), absl::StatusCode::kUnavailable) << chief.status;
}

TEST(AllReduceFailureTest, APsIsOneTooMany) {
  QuadraticSource source({{.name = "w", .shape = {3}}});
  const PlacementResult placement = *PlaceVariables(source.variables(), 1, Placement::kRoundRobin, {});
  AllReduceAlgorithm all_reduce(source, placement, RuleSpec{.learning_rate = 0.1}, nullptr);
  AsynchronousAlgorithm asynchronous(source, placement, RuleSpec{.learning_rate = 0.1});
  auto with = Node::Create(TaskOf({"localhost:1", "localhost:2"}, 0, "localhost:3"), Unflushed()).value();
  with->SetAlgorithm(&all_reduce);
  const absl::Status one_too_many = with->MakeSessionEnvironment().status();
  EXPECT_THAT(one_too_many.message(), HasSubstr("--ps 0"));
  EXPECT_TRUE(IsWrongConfiguration(one_too_many));
  auto without = Node::Create(TaskOf({"localhost:1", "localhost:2"}, 0), Unflushed()).value();
  without->SetAlgorithm(&asynchronous);
  const absl::Status none = without->MakeSessionEnvironment().status();
  EXPECT_THAT(none.message(), HasSubstr("AllReduce"));
  EXPECT_TRUE(IsWrongConfiguration(none));
}

}  // namespace
}  // namespace muster::all_reduce_training_test
