// What a training program says about optimizers, through the whole store: groups with their own rules, schedules by the
// global step, clipping by norms across ps, and the types that a ps updates.
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/optim/kernels/half.h"
#include "muster/optim/rule_options.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::store_optimizer_test {
namespace {

using ::testing::Each, ::testing::HasSubstr;

// A chief that pushes alone, to two ps.
class Trainee {
 public:
  Trainee(const std::vector<VariableSpec>& variables, const OptimizerSpec& optimizer)
      : store_(2, {"chief:0"}),
        model_(variables, {}, 2),
        gradients_(variables, {}, 2),
        client_(store_.Client("chief:0")) {
    model_.binding.optimizer = optimizer;
    EXPECT_EQ(client_->Join(true), absl::OkStatus());
    client_->Bind(model_.binding);
    started = client_->Initialize(0, 0, nullptr);
    if (started.ok()) started = client_->AwaitReady(absl::InfiniteFuture()).status();
  }
  template <typename T>
  void SetGradient(size_t variable, T value) {
    std::vector<T> values(gradients_.memory[variable].size() / sizeof(T), value);
    std::memcpy(gradients_.memory[variable].data(), values.data(), gradients_.memory[variable].size());
  }
  absl::StatusOr<StoreClient::StepResult> TryPush() {
    looks = 0;
    return client_->PushPull(
        [this](size_t i) {
          ++looks;
          return ByteSpan(gradients_.memory[i]);
        },
        {});
  }
  void Push() {
    const auto pushed = TryPush();
    EXPECT_TRUE(pushed.ok()) << pushed.status();
  }
  // As shown on ps 0's status page.
  int Dropped() const {
    return nlohmann::json::parse(StatusJson(store_.service(0).MakeView()))["clients"][0]["dropped_non_finite"];
  }
  template <typename T>
  std::vector<T> Values(size_t variable) const {
    return model_.Values<T>(variable);
  }

  absl::Status started;
  int looks = 0;  // reads of a gradient by the last push

 private:
  mutable SimulatedStore store_;
  WorkerModel model_;
  WorkerModel gradients_;
  std::unique_ptr<StoreClient> client_;
};

TEST(StoreOptimizerTest, GroupsHaveRulesAndRatesOfTheirOwn) {
  Trainee trainee(
      {{.name = "embedding.w", .shape = {3}}, {.name = "fc.w", .shape = {2}}, {.name = "fc.b", .shape = {2}}},
      OptimizerSpec(Sgd({.learning_rate = 1}), {{{"embedding.*"}, Sgd({.learning_rate = 10})},
                                                {{"fc.b"}, Momentum({.learning_rate = 1, .momentum = 0.5})}}));
  ASSERT_EQ(trainee.started, absl::OkStatus());
  for (size_t i = 0; i < 3; ++i) trainee.SetGradient(i, -1.0f);
  trainee.Push();
  trainee.Push();
  EXPECT_THAT(trainee.Values<float>(0), Each(20.0f));
  EXPECT_THAT(trainee.Values<float>(1), Each(2.0f));
  EXPECT_THAT(trainee.Values<float>(2), Each(1.0f + 1.5f));
}

TEST(StoreOptimizerTest, AGroupOfNoVariableIsRefused) {
  Trainee trainee({{.name = "w", .shape = {3}}}, OptimizerSpec(Sgd(), {{{"nobody"}, Sgd()}}));
  EXPECT_TRUE(absl::IsInvalidArgument(trainee.started)) << trainee.started;
  EXPECT_THAT(std::string(trainee.started.message()), HasSubstr("nobody"));
}

// Two variables, one on each ps: the ps that doesn't count the global step uses it nevertheless.
TEST(StoreOptimizerTest, SchedulesGoByTheGlobalStepOnEveryPs) {
  RuleSpec rule = Sgd({.learning_rate = 8});
  rule.schedule = {.kind = ScheduleKind::kStep, .decay_steps = 2, .decay_rate = 0.5};
  Trainee trainee({{.name = "a", .shape = {2}}, {.name = "b", .shape = {2}}}, rule);
  ASSERT_EQ(trainee.started, absl::OkStatus());
  for (size_t i = 0; i < 2; ++i) trainee.SetGradient(i, -1.0f);
  for (int i = 0; i < 4; ++i) trainee.Push();
  for (size_t i = 0; i < 2; ++i) EXPECT_THAT(trainee.Values<float>(i), Each(8.0f + 8 + 4 + 4));
}

TEST(StoreOptimizerTest, ClippingByNormIsOfTheWholeVariableAndByGlobalNormOfAll) {
  const std::vector<VariableSpec> variables = {{.name = "a", .shape = {4}}, {.name = "b", .shape = {1}}};
  for (const bool global : {false, true}) {
    RuleSpec rule = Sgd({.learning_rate = 1});
    rule.clip = {global ? ClipKind::kGlobalNorm : ClipKind::kNorm, 5};
    OptimizerSpec optimizer = rule;
    optimizer.non_finite = NonFinite::kDrop;
    Trainee trainee(variables, optimizer);
    ASSERT_EQ(trainee.started, absl::OkStatus());
    trainee.SetGradient(0, -3.0f);  // norm 6
    trainee.SetGradient(1, -8.0f);  // norm 8; both together 10
    trainee.Push();
    EXPECT_EQ(trainee.looks, 3 * 2) << "one at its length, one for norms and finiteness together, one to send";
    EXPECT_THAT(trainee.Values<float>(0), Each(global ? 1.5f : 2.5f));
    EXPECT_THAT(trainee.Values<float>(1), Each(global ? 4.0f : 5.0f));
  }
}

TEST(StoreOptimizerTest, HalvesAreUpdatedWithSlotsInFloat) {
  Trainee trainee({{.name = "h", .dtype = DType::kFloat16, .shape = {20000}},
                   {.name = "b", .dtype = DType::kBFloat16, .shape = {3}}},
                  Momentum({.learning_rate = 1, .momentum = 0.5}));
  ASSERT_EQ(trainee.started, absl::OkStatus());
  trainee.SetGradient<uint16_t>(0, 0xbc00);  // −1
  trainee.SetGradient<uint16_t>(1, 0xbf80);  // −1
  trainee.Push();
  trainee.Push();
  EXPECT_THAT(trainee.Values<uint16_t>(0), Each(0x4100));  // 2.5
  EXPECT_THAT(trainee.Values<uint16_t>(1), Each(0x4020));
}

TEST(StoreOptimizerTest, WholeNumbersAreOnlyAddedTo) {
  const std::vector<VariableSpec> variables = {{.name = "n", .dtype = DType::kInt64, .shape = {3}}};
  Trainee refused(variables, Sgd());
  EXPECT_TRUE(absl::IsInvalidArgument(refused.started)) << refused.started;
  EXPECT_THAT(std::string(refused.started.message()), HasSubstr("'n'"));
  Trainee trainee(variables, PlainAdd());
  ASSERT_EQ(trainee.started, absl::OkStatus());
  trainee.SetGradient<int64_t>(0, int64_t{1} << 60);
  trainee.Push();
  trainee.Push();
  EXPECT_THAT(trainee.Values<int64_t>(0), Each(int64_t{1} << 61));
}

OptimizerSpec SgdThat(NonFinite policy) {
  OptimizerSpec optimizer = Sgd({.learning_rate = 1});
  optimizer.non_finite = policy;
  return optimizer;
}

// The gradient of the second variable, on the second ps, has a NaN.
TEST(StoreOptimizerTest, WhatIsNotFiniteIsAppliedDroppedWholeOrTheEnd) {
  const std::vector<VariableSpec> variables = {{.name = "a", .shape = {2}}, {.name = "b", .shape = {2}}};
  for (const NonFinite policy : {NonFinite::kApply, NonFinite::kDrop, NonFinite::kStop}) {
    Trainee trainee(variables, SgdThat(policy));
    ASSERT_EQ(trainee.started, absl::OkStatus());
    trainee.SetGradient(0, -1.0f);
    trainee.SetGradient(1, std::nanf(""));
    const auto pushed = trainee.TryPush();
    if (policy == NonFinite::kStop) {
      EXPECT_TRUE(absl::IsInvalidArgument(pushed.status())) << pushed.status();
      EXPECT_THAT(std::string(pushed.status().message()), HasSubstr("'b'"));
      continue;
    }
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    const bool drops = policy == NonFinite::kDrop;
    EXPECT_EQ(pushed->dropped, drops);
    EXPECT_EQ(pushed->global_step, drops ? 0 : 1);
    EXPECT_THAT(trainee.Values<float>(0), Each(drops ? 0.0f : 1.0f));
    EXPECT_EQ(std::isnan(trainee.Values<float>(1)[0]), !drops);
    EXPECT_EQ(trainee.Dropped(), drops ? 1 : 0);
    trainee.SetGradient(1, -1.0f);
    trainee.Push();
    if (drops) {
      EXPECT_THAT(trainee.Values<float>(1), Each(1.0f));
    }
  }
}

}  // namespace
}  // namespace muster::store_optimizer_test
