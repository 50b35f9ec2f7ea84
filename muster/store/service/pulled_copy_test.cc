// Pushes that carry the values that their gradients were computed from: delay compensation on the ps against a plain
// reference, over slices of several stripes, shards and types.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "muster/optim/kernels/half.h"
#include "muster/store/testing/scripted_worker.h"

namespace muster::pulled_copy_test {
namespace {

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {40000}},
                                              {.name = "d", .dtype = DType::kFloat64, .shape = {7}},
                                              {.name = "mean", .shape = {5}, .kind = VariableKind::kBuffer}};
constexpr double kRate = 0.1;
constexpr double kLambda = 0.4;

double Gradient(size_t i) { return std::cos(0.3 * static_cast<double>(i)); }

template <typename T>
std::vector<std::byte> Gradients(size_t count) {
  std::vector<std::byte> bytes(count * sizeof(T));
  for (size_t i = 0; i < count; ++i) {
    const T g = static_cast<T>(Gradient(i));
    std::memcpy(bytes.data() + i * sizeof(T), &g, sizeof(T));
  }
  return bytes;
}

// Returns the value after two pushes of the same gradient, both computed from `pulled`.
double Reference(double pulled, double g) {
  const double now = pulled - kRate * g;
  return now - kRate * (g + kLambda * g * g * (now - pulled));
}

TEST(PulledCopyTest, ALateGradientIsCompensatedByWhatTheVariableHasMoved) {
  SimulatedStore store(2, {"chief:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  WorkerModel model(kVariables, {.learning_rate = kRate}, 2, {.kind = Partitioning::Kind::kFixed, .shards = 2});
  model.Fill(0);
  model.binding.compensation = kLambda;
  // The worker leaves the updates to the ps.
  const auto chief = store.Client("chief:0", {.apply = ApplyChoice::kAuto});
  ASSERT_TRUE(chief->Join(true).ok());
  chief->Bind(model.binding);
  ASSERT_TRUE(chief->Initialize(0, 0, nullptr).ok());
  ASSERT_TRUE(chief->AwaitReady(absl::InfiniteFuture()).ok());
  const auto pulled = model.memory;
  const std::vector<std::byte> gradients[] = {Gradients<float>(40000), Gradients<double>(7)};
  const auto gradient = [&](size_t i) { return i < 2 ? ByteSpan(gradients[i]) : ByteSpan(); };
  ASSERT_TRUE(chief->PushPull(gradient, {.pull = PullWhat::kNothing}).ok());
  ASSERT_TRUE(chief
                  ->PushPull(gradient,
                             {.publish_buffers = true, .computed_from = [&](size_t i) { return ByteSpan(pulled[i]); }})
                  .ok());
  const auto before = [&](auto zero, size_t variable, size_t i) {
    decltype(zero) value;
    std::memcpy(&value, pulled[variable].data() + i * sizeof value, sizeof value);
    return value;
  };
  const auto w = model.Values<float>(0);
  for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(w[i], Reference(before(float{}, 0, i), Gradient(i)), 3e-5) << i;
  const auto d = model.Values<double>(1);
  for (size_t i = 0; i < d.size(); ++i) EXPECT_NEAR(d[i], Reference(before(double{}, 1, i), Gradient(i)), 1e-12) << i;
}

// Returns the value after two pushes of the same difference, both computed from `pulled`; `scale`: by the second's
// staleness.
double SecondDelta(double pulled, double delta, double gamma, double scale) {
  const double now = pulled + delta;
  return now + scale * delta / ((now - pulled) * (now - pulled) / gamma + 1);
}

// Compares with both kinds of scaling by staleness: the second push has a staleness of 1.
void ComparesDeltas(StalenessScale staleness_scale, double scale) {
  constexpr double kGamma = 0.3;
  SimulatedStore store(2, {"chief:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  WorkerModel model(kVariables, {.kind = RuleKind::kAdd}, 2, {.kind = Partitioning::Kind::kFixed, .shards = 2});
  model.Fill(0);
  model.binding.adaptive = kGamma;
  model.binding.staleness_scale = staleness_scale;
  const auto chief = store.Client("chief:0", {.apply = ApplyChoice::kAuto});
  ASSERT_TRUE(chief->Join(true).ok());
  chief->Bind(model.binding);
  ASSERT_TRUE(chief->Initialize(0, 0, nullptr).ok());
  ASSERT_TRUE(chief->AwaitReady(absl::InfiniteFuture()).ok());
  const auto before = model.memory;
  const auto w_before = model.Values<float>(0);
  const auto d_before = model.Values<double>(1);
  const std::vector<std::byte> deltas[] = {Gradients<float>(40000), Gradients<double>(7)};
  const auto delta = [&](size_t i) { return i < 2 ? ByteSpan(deltas[i]) : ByteSpan(); };
  const auto computed_from = [&](size_t i) { return ByteSpan(before[i]); };
  ASSERT_TRUE(chief->PushPull(delta, {.pull = PullWhat::kNothing, .computed_from = computed_from}).ok());
  const auto second = chief->PushPull(delta, {.computed_from = computed_from}).value();
  EXPECT_EQ(second.staleness, 1u);
  const auto w = model.Values<float>(0);
  for (size_t i = 0; i < w.size(); ++i)
    EXPECT_NEAR(w[i], SecondDelta(w_before[i], Gradient(i), kGamma, scale), 1e-4) << i;
  const auto d = model.Values<double>(1);
  for (size_t i = 0; i < d.size(); ++i)
    EXPECT_NEAR(d[i], SecondDelta(d_before[i], Gradient(i), kGamma, scale), 1e-12) << i;
}

TEST(PulledCopyTest, ALateDifferenceIsMadeSmallerByWhatEachWeightHasMoved) { ComparesDeltas(StalenessScale::kNone, 1); }

TEST(PulledCopyTest, AndByItsStaleness) { ComparesDeltas(StalenessScale::kInverseAfterThis, 0.5); }

TEST(PulledCopyTest, HalvesAreMadeSmallerToo) {
  constexpr double kGamma = 0.3;
  constexpr size_t kCount = 1100;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    SimulatedStore store(1, {"chief:0"});
    WorkerModel model({{.name = "h", .dtype = dtype, .shape = {kCount}}}, {.kind = RuleKind::kAdd}, 1);
    model.binding.adaptive = kGamma;
    const auto chief = store.Client("chief:0");
    ASSERT_TRUE(chief->Join(true).ok());
    chief->Bind(model.binding);
    ASSERT_TRUE(chief->Initialize(0, 0, nullptr).ok());
    ASSERT_TRUE(chief->AwaitReady(absl::InfiniteFuture()).ok());
    const auto zeros = model.memory[0];
    std::vector<float> exact(kCount);
    for (size_t i = 0; i < kCount; ++i) exact[i] = static_cast<float>(Gradient(i));
    std::vector<std::byte> deltas(kCount * kHalfBytes);
    HalvesFromFloats(dtype, exact.data(), deltas.data(), kCount);
    FloatsFromHalves(dtype, deltas.data(), exact.data(), kCount);
    for (int push = 0; push < 2; ++push)
      ASSERT_TRUE(chief
                      ->PushPull([&](size_t) { return ByteSpan(deltas); },
                                 {.computed_from = [&](size_t) { return ByteSpan(zeros); }})
                      .ok());
    std::vector<float> values(kCount);
    FloatsFromHalves(dtype, model.memory[0].data(), values.data(), kCount);
    for (size_t i = 0; i < kCount; ++i)
      EXPECT_NEAR(values[i], SecondDelta(0, exact[i], kGamma, 1), dtype == DType::kFloat16 ? 2e-3 : 2e-2) << i;
  }
}

class PulledCopyRequestTest : public ::testing::Test {
 protected:
  void Start(const GateSpec& gate = {}) {
    model_.binding.gate = gate;
    worker_ = std::make_unique<ScriptedWorker>(store_, "chief:0", model_, /*chief=*/true);
  }
  std::string Refusal(const PushPullRequest& message) {
    const auto answer = worker_->Send(message, 1);
    store_.Pass(absl::Milliseconds(10));
    EXPECT_TRUE(absl::IsInvalidArgument(answer->status)) << answer->status;
    return std::string(answer->status.message());
  }

  SimulatedStore store_{1, {"chief:0"}};
  WorkerModel model_{{{.name = "w", .shape = {3}}}, {.learning_rate = kRate}, 1};
  std::unique_ptr<ScriptedWorker> worker_;
};

TEST_F(PulledCopyRequestTest, WhatCanNotBeMeantIsRefused) {
  Start();
  PushPullRequest message = worker_->Message();
  message.with_pulled = true;  // and the copy doesn't come
  EXPECT_NE(Refusal(message).find("takes 24 bytes, but 12 came"), std::string::npos);
  message.with_pulled = false;
  message.compensation = 1;
  EXPECT_NE(Refusal(message).find("without the pulled copy"), std::string::npos);
  message.compensation = 0;
  message.adaptive = 1;
  worker_->BreakConnection(store_);
  EXPECT_NE(Refusal(message).find("without the pulled copy"), std::string::npos);
  // Nothing is pushed, so that the lengths are right.
  message.pushed.clear();
  message.with_pulled = true;
  for (double PushPullRequest::*const number : {&PushPullRequest::compensation, &PushPullRequest::adaptive}) {
    message.compensation = message.adaptive = 0;
    for (const double wrong : {-1.0, std::nan(""), HUGE_VAL}) {
      message.*number = wrong;
      worker_->BreakConnection(store_);
      EXPECT_NE(Refusal(message).find("accepted: 0 and more"), std::string::npos) << wrong;
    }
  }
  message.compensation = message.adaptive = 1;
  EXPECT_NE(Refusal(message).find("use one"), std::string::npos);
}

TEST_F(PulledCopyRequestTest, ARoundTakesNone) {
  Start({GateKind::kSynchronous, 1, 1, false});
  PushPullRequest message = worker_->Message();
  message.contributes = true;
  message.with_pulled = true;
  message.pushed.clear();
  EXPECT_NE(Refusal(message).find("takes no pulled copies"), std::string::npos);
}

}  // namespace
}  // namespace muster::pulled_copy_test
