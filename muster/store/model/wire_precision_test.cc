// Gradients and parameters that travel as halves: what the ps then holds and the worker gets, against a plain reference
// for every pair of precisions; what it saves; what is refused.
#include "muster/store/model/wire_precision.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "muster/store/client/elastic_exchange.h"
#include "muster/store/testing/half_reference.h"
#include "muster/store/testing/scripted_worker.h"

namespace muster::wire_precision_test {
namespace {

using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kRate = 0.25;  // times a float: exact

// Sizes that are multiples of nothing, several stripes, several types.
const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {40001}},
                                              {.name = "b", .shape = {3}},
                                              {.name = "scalar"},
                                              {.name = "none", .shape = {0, 3}},
                                              {.name = "d", .dtype = DType::kFloat64, .shape = {7}},
                                              {.name = "half", .dtype = DType::kFloat16, .shape = {5}},
                                              {.name = "frozen", .shape = {5}, .kind = VariableKind::kFrozen},
                                              {.name = "mean", .shape = {9}, .kind = VariableKind::kBuffer}};
const std::vector<std::string> kTasks = {"chief:0", "worker:0"};
const LeaseOptions kLongLease = {.lease = absl::Hours(10)};

std::vector<std::byte> Bytes(const std::vector<float>& floats) {
  std::vector<std::byte> bytes(floats.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), floats.data(), bytes.size());
  return bytes;
}

TEST(WirePrecisionTest, HasNamesForUsers) {
  for (const WirePrecision precision : kAllPrecisions)
    EXPECT_EQ(ParseWirePrecision(WirePrecisionName(precision)), precision) << WirePrecisionName(precision);
  EXPECT_EQ(ParseWirePrecision("bf16"), WirePrecision::kBFloat16);
  EXPECT_EQ(ParseWirePrecision("float16"), std::nullopt);
  EXPECT_EQ(ParseWirePrecision(""), std::nullopt);
}

TEST(WirePrecisionTest, OnlyTrainableFloatsAreNarrowed) {
  for (const VariableSpec& variable : kVariables) {
    const bool narrow = variable.dtype == DType::kFloat32 && variable.kind == VariableKind::kTrainable;
    const WireForm form(WirePrecision::kBFloat16, variable);
    EXPECT_EQ(form.narrow(), narrow) << variable.name;
    EXPECT_EQ(form.bytes(variable.bytes()), variable.bytes() / (narrow ? 2 : 1)) << variable.name;
    EXPECT_FALSE(WireForm(WirePrecision::kFull, variable).narrow());
  }
}

TEST(WirePrecisionTest, RoundsToTheNearestEvenWhateverTheNumber) {
  std::vector<float> numbers = {kInf, -kInf, 65519.99F, 65520.0F, -65520.0F, 3.3961776e38F, 3.3895314e38F, 3.4e38F};
  for (size_t i = 0; i < 1000; ++i) numbers.push_back(Awkward(i));
  for (const WirePrecision precision : kAllPrecisions) {
    const WireForm form(precision, {.name = "x"});
    std::vector<std::byte> wire(form.bytes(numbers.size() * sizeof(float)));
    std::vector<float> back(numbers.size() + 1);
    const std::vector<std::byte> memory = Bytes(numbers);
    form.Write(memory, wire);
    EXPECT_EQ(memory, Bytes(numbers));
    form.Read(wire, std::as_writable_bytes(std::span(back)).first(memory.size()));
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(back[i], Rounded(precision, numbers[i])) << WirePrecisionName(precision) << " of " << numbers[i];
      EXPECT_EQ(std::signbit(back[i]), std::signbit(numbers[i])) << numbers[i];
    }
    EXPECT_EQ(back.back(), 0);
  }
}

TEST(WirePrecisionTest, NaNStaysOne) {
  for (const WirePrecision precision : kAllPrecisions) {
    const WireForm form(precision, {.name = "x"});
    // A NaN whose payload is in the lost bits, and a negative one.
    const float nan[] = {std::bit_cast<float>(0x7f800001U), -std::numeric_limits<float>::quiet_NaN()};
    std::vector<std::byte> wire(form.bytes(sizeof nan));
    float back[2] = {};
    form.Write(std::as_bytes(std::span(nan)), wire);
    form.Read(wire, std::as_writable_bytes(std::span(back)));
    EXPECT_TRUE(std::isnan(back[0]) && std::isnan(back[1])) << WirePrecisionName(precision);
  }
}

TEST(WirePrecisionTest, WhatOverflowsIsSeen) {
  const auto overflows = [](WirePrecision precision, float x) {
    const float some[] = {1, x, 2};
    const double squares = 5 + static_cast<double>(x) * x;
    return WireForm(precision, {.name = "x"}).Overflows(std::as_bytes(std::span(some)), squares);
  };
  for (const float x : {65519.99F, 65520.0F, -65520.0F, 1e6F, 3.3895314e38F, 3.3961776e38F, -3.4e38F})
    for (const WirePrecision precision : kAllPrecisions)
      EXPECT_EQ(overflows(precision, x), std::isinf(Rounded(precision, x))) << WirePrecisionName(precision) << x;
  EXPECT_FALSE(overflows(WirePrecision::kFloat16, kInf)) << "which it was before";
  // A large sum of small numbers.
  const std::vector<std::byte> many = Bytes(std::vector<float>(100000, 1000));
  EXPECT_FALSE(WireForm(WirePrecision::kFloat16, {.name = "x"}).Overflows(many, 1e11));
}

// One worker, several ps with sgd, variables in parts.
struct WireRun {
  WireRun(int num_ps, const WireOptions& wire, const RuleSpec& rule = {.learning_rate = kRate},
          const std::vector<VariableSpec>& variables = kVariables)
      : store(num_ps, kTasks, kLongLease),
        model(variables, rule, num_ps, {.kind = Partitioning::Kind::kFixed, .shards = 3}),
        gradients(variables, rule, num_ps, {.kind = Partitioning::Kind::kFixed, .shards = 3}),
        chief(store.Client("chief:0", script, {.wire = wire})) {
    model.Fill(0.5);
    for (size_t i = 0; i < variables.size(); ++i)
      if (variables[i].dtype == DType::kFloat32) SetAwkward(i);
  }
  void SetAwkward(size_t variable) {
    std::vector<float> floats(gradients.memory[variable].size() / sizeof(float));
    // Overflow has its own test.
    for (size_t i = 0; i < floats.size(); ++i) floats[i] = std::min(Awkward(i), 60000.0F);
    Set(variable, floats);
  }
  void Set(size_t variable, const std::vector<float>& floats) {
    if (!floats.empty()) std::memcpy(gradients.memory[variable].data(), floats.data(), floats.size() * sizeof(float));
  }
  absl::Status Start() {
    absl::Status status = chief->Join(true);
    chief->Bind(model.binding);
    if (status.ok()) status = chief->Initialize(0, 0, nullptr);
    if (status.ok()) status = chief->AwaitReady(absl::InfiniteFuture()).status();
    return status;
  }
  absl::StatusOr<StorePushResult> Push(const StorePushOptions& options = {.publish_buffers = true}) {
    return chief->PushPull([this](size_t i) { return ByteSpan(gradients.memory[i]); }, options);
  }

  SimulatedStore store;
  FaultScript script;
  WorkerModel model;
  WorkerModel gradients;
  std::unique_ptr<StoreClient> chief;
};

TEST(WireTrainingTest, EveryPairOfPrecisionsDoesWhatTheReferenceDoes) {
  for (const WirePrecision pushed : kAllPrecisions) {
    for (const WirePrecision pulled : kAllPrecisions) {
      SCOPED_TRACE(testing::Message() << WirePrecisionName(pushed) << ", " << WirePrecisionName(pulled));
      WireRun run(3, {.gradients = pushed, .parameters = pulled});
      WireRun plain(3, {});
      ASSERT_EQ(run.Start(), absl::OkStatus());
      ASSERT_EQ(plain.Start(), absl::OkStatus());
      const auto gradients = run.gradients.memory;
      std::vector<std::vector<float>> expected;
      for (size_t i = 0; i < kVariables.size(); ++i) expected.push_back(run.model.Values<float>(i));
      for (int step = 0; step < 2; ++step) {
        ASSERT_EQ(run.Push().status(), absl::OkStatus());
        ASSERT_EQ(plain.Push().status(), absl::OkStatus());
        for (const size_t i : {0, 1, 2}) {
          const auto gradient = run.gradients.Values<float>(i);
          const auto values = run.model.Values<float>(i);
          for (size_t k = 0; k < values.size(); ++k) {
            expected[i][k] -= static_cast<float>(kRate) * Rounded(pushed, gradient[k]);
            ASSERT_EQ(std::bit_cast<uint32_t>(values[k]), std::bit_cast<uint32_t>(Rounded(pulled, expected[i][k])))
                << kVariables[i].name << "[" << k << "]: " << values[k] << ", gradient " << gradient[k];
          }
        }
      }
      EXPECT_EQ(run.gradients.memory, gradients) << "they are only read";
      for (const size_t i : {3, 4, 5, 6, 7})
        EXPECT_EQ(run.model.memory[i], plain.model.memory[i]) << kVariables[i].name << " is sent as it is";
      // What the ps keep was never narrowed.
      ASSERT_EQ(run.chief->Pull(PullWhat::kEverything), absl::OkStatus());
      for (const size_t i : {0, 1, 2}) EXPECT_EQ(run.model.memory[i], Bytes(expected[i])) << kVariables[i].name;
    }
  }
}

TEST(WireTrainingTest, TheBytesOnTheWireAreHalf) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {100000}}};
  const auto traffic = [&](const WireOptions& wire) {
    WireRun run(2, wire, {.learning_rate = kRate}, variables);
    EXPECT_EQ(run.Start(), absl::OkStatus());
    const Channel::Stats before = TrafficOf(*run.chief);
    for (int step = 0; step < 10; ++step) EXPECT_EQ(run.Push().status(), absl::OkStatus());
    Channel::Stats after = TrafficOf(*run.chief);
    after.bytes_sent -= before.bytes_sent;
    after.bytes_received -= before.bytes_received;
    return after;
  };
  const double all = 10 * 400000;
  const double heads = 10 * 3 * 200;  // for requests and replies
  const Channel::Stats full = traffic({});
  const Channel::Stats narrow = traffic({.gradients = WirePrecision::kBFloat16, .parameters = WirePrecision::kFloat16});
  EXPECT_NEAR(static_cast<double>(full.bytes_sent), all, heads);
  EXPECT_NEAR(static_cast<double>(full.bytes_received), all, heads);
  EXPECT_NEAR(static_cast<double>(narrow.bytes_sent), all / 2, heads);
  EXPECT_NEAR(static_cast<double>(narrow.bytes_received), all / 2, heads);
  const Channel::Stats one_way = traffic({.gradients = WirePrecision::kBFloat16});
  EXPECT_NEAR(static_cast<double>(one_way.bytes_sent), all / 2, heads);
  EXPECT_NEAR(static_cast<double>(one_way.bytes_received), all, heads);
}

// Requests and answers are lost, cut and duplicated: the values are the same as without a fault.
TEST(WireTrainingTest, ARetryIsAppliedOnce) {
  const WireOptions wire = {.gradients = WirePrecision::kBFloat16, .parameters = WirePrecision::kFloat16};
  const auto train = [&](const std::function<void(FaultScript&)>& faults, uint64_t& met) {
    WireRun run(2, wire);
    EXPECT_EQ(run.Start(), absl::OkStatus());
    faults(run.script);
    for (int step = 0; step < 3; ++step) EXPECT_EQ(run.Push().status(), absl::OkStatus());
    met = run.script.met();
    EXPECT_EQ(run.chief->Pull(PullWhat::kEverything), absl::OkStatus());
    return run.model.memory;
  };
  uint64_t met = 0;
  const auto expected = train([](FaultScript&) {}, met);
  EXPECT_EQ(met, 0U);
  const auto method = static_cast<uint16_t>(StoreMethod::kPushPull);
  for (const FaultKind kind :
       {FaultKind::kCutRequest, FaultKind::kCutReply, FaultKind::kDuplicateRequest, FaultKind::kDelayReply}) {
    for (uint64_t which = 1; which <= 6; ++which) {
      const auto values = train(
          [&](FaultScript& script) {
            script.Add({.kind = kind, .first = which, .method = method, .delay = absl::Seconds(1), .bytes = 1000});
          },
          met);
      EXPECT_EQ(met, 1U) << which;
      EXPECT_EQ(values, expected) << static_cast<int>(kind) << " on push " << which;
    }
  }
}

// A half gradient is widened before it is added up: bf16 can't hold the sum of 1 and 2^-9.
TEST(WireTrainingTest, ARoundOfASynchronousGateAddsUpFloats) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {20001}}};
  SimulatedStore store(1, kTasks, kLongLease);
  WorkerModel model(variables, {.learning_rate = 1}, 1);
  model.binding.gate = {.kind = GateKind::kSynchronous, .replicas_to_aggregate = 2, .total_replicas = 2};
  ScriptedWorker chief(store, "chief:0", model, /*chief=*/true);
  ScriptedWorker worker(store, "worker:0", model);
  SimulatedTransport transport(store.network, store.loop);
  const auto channel = transport.Connect(store.addresses()[0]);
  struct Answer {
    std::vector<std::byte> values;
    bool there = false;
  };
  const auto contribute = [&](ScriptedWorker& who, const std::vector<float>& gradient, WirePrecision pulled) {
    PushPullRequest message = who.Message();
    message.contributes = true;
    message.pushed_as = WirePrecision::kBFloat16;
    message.pulled_as = pulled;
    const auto wire = std::make_shared<std::vector<std::byte>>(gradient.size() * 2);
    WireForm(message.pushed_as, variables[0]).Write(std::as_bytes(std::span(gradient)), *wire);
    const auto answer = std::make_shared<Answer>();
    answer->values.resize(WireForm(pulled, variables[0]).bytes(variables[0].bytes()));
    channel->Call({.method = static_cast<uint16_t>(StoreMethod::kPushPull),
                   .control = Encode(message),
                   .bulk = {*wire},
                   .into = {answer->values}},
                  [answer, wire](absl::StatusOr<Reply> reply) {
                    EXPECT_TRUE(reply.ok()) << reply.status();
                    answer->there = true;
                  });
    store.Pass(absl::Milliseconds(10));
    return answer;
  };
  const auto first = contribute(chief, std::vector<float>(20001, 1.0F), WirePrecision::kFull);
  EXPECT_FALSE(first->there);
  const auto second = contribute(worker, std::vector<float>(20001, 0x1p-9F), WirePrecision::kBFloat16);
  ASSERT_TRUE(first->there && second->there);
  EXPECT_EQ(first->values, Bytes(std::vector<float>(20001, -(1 + 0x1p-9F) / 2)));
  std::vector<float> narrow(20001);
  WireForm(WirePrecision::kBFloat16, variables[0]).Read(second->values, std::as_writable_bytes(std::span(narrow)));
  for (const float value : narrow) ASSERT_EQ(value, Rounded(WirePrecision::kBFloat16, -(1 + 0x1p-9F) / 2));
}

TEST(WireTrainingTest, LateGradientsAreCompensatedAsFloats) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {20001}}};
  WireRun run(1, {.gradients = WirePrecision::kFloat16}, {.learning_rate = kRate}, variables);
  run.model.binding.compensation = 0.5;
  ASSERT_EQ(run.Start(), absl::OkStatus());
  run.gradients.Fill(0);
  const std::vector<std::byte> pulled = run.model.memory[0];
  const auto computed_from = [&](size_t) { return ByteSpan(pulled); };
  for (int step = 0; step < 2; ++step) ASSERT_EQ(run.Push({.computed_from = computed_from}).status(), absl::OkStatus());
  const auto values = run.model.Values<float>(0);
  const auto gradient = run.gradients.Values<float>(0);
  for (size_t i = 0; i < values.size(); ++i) {
    float before = 0;
    std::memcpy(&before, pulled.data() + i * sizeof before, sizeof before);
    const double g = Rounded(WirePrecision::kFloat16, gradient[i]);
    const double moved = -kRate * g;
    ASSERT_NEAR(values[i], before + moved - kRate * (g + 0.5 * g * g * moved), 0.02) << i;
  }
}

TEST(WireTrainingTest, WhatOverflowsOnTheWireCountsAsNotFinite) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {30}}};
  for (const NonFinite policy : {NonFinite::kApply, NonFinite::kDrop, NonFinite::kStop}) {
    for (const WirePrecision precision : kAllPrecisions) {
      WireRun run(1, {.gradients = precision}, {.learning_rate = kRate}, variables);
      run.model.binding.optimizer.non_finite = policy;
      ASSERT_EQ(run.Start(), absl::OkStatus());
      const auto before = run.model.memory;
      run.Set(0, std::vector<float>(30, 7e4F));
      const auto pushed = run.Push();
      if (precision != WirePrecision::kFloat16) {
        ASSERT_EQ(pushed.status(), absl::OkStatus());
        EXPECT_FALSE(pushed->dropped);
        EXPECT_NE(run.model.memory, before);
      } else if (policy == NonFinite::kApply) {
        EXPECT_EQ(pushed.status(), absl::OkStatus());
        EXPECT_EQ(run.model.Values<float>(0), std::vector<float>(30, -kInf)) << "as of an infinite gradient";
      } else if (policy == NonFinite::kDrop) {
        ASSERT_EQ(pushed.status(), absl::OkStatus());
        EXPECT_TRUE(pushed->dropped);
        EXPECT_EQ(run.model.memory, before);
      } else {
        EXPECT_TRUE(absl::IsInvalidArgument(pushed.status())) << pushed.status();
        EXPECT_THAT(std::string(pushed.status().message()), HasSubstr("variable 'w' of chief:0"));
      }
    }
  }
}

TEST(WireTrainingTest, AnElasticExchangeIsSentAsItIs) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {1000}}};
  const auto exchange = [&](const WireOptions& wire) {
    WireRun run(1, wire, {.kind = RuleKind::kAdd}, variables);
    run.model.binding.exchanges = true;
    EXPECT_EQ(run.Start(), absl::OkStatus());
    run.model.Fill(2);
    ElasticExchange elastic(*run.chief, 0.3);
    EXPECT_EQ(elastic.Exchange().status(), absl::OkStatus());
    elastic.Move();
    return run.model.memory;
  };
  EXPECT_EQ(exchange({.gradients = WirePrecision::kFloat16, .parameters = WirePrecision::kBFloat16}), exchange({}));
}

TEST(WireTrainingTest, TrainingComesAsNearAsTheGradientsAllow) {
  const std::vector<VariableSpec> variables = {{.name = "x", .shape = {1000}}};
  for (const WirePrecision precision : {WirePrecision::kBFloat16, WirePrecision::kFloat16}) {
    WireRun run(2, {.gradients = precision, .parameters = precision}, {.learning_rate = kRate}, variables);
    ASSERT_EQ(run.Start(), absl::OkStatus());
    // Gradients of Σ (x - 1)² / 2, starting at ±100.
    for (int step = 0; step < 60; ++step) {
      std::vector<float> gradient = run.model.Values<float>(0);
      for (float& element : gradient) element -= 1;
      run.Set(0, gradient);
      ASSERT_EQ(run.Push().status(), absl::OkStatus());
    }
    for (const float x : run.model.Values<float>(0)) ASSERT_NEAR(x, 1, 0x1p-7) << WirePrecisionName(precision);
  }
}

class WireRequestTest : public ::testing::Test {
 protected:
  void Start(const RuleSpec& rule = {}, bool exchanges = false) {
    model_ = std::make_unique<WorkerModel>(std::vector<VariableSpec>{{.name = "w", .shape = {10}}}, rule, 1);
    model_->binding.exchanges = exchanges;
    worker_ = std::make_unique<ScriptedWorker>(store_, "chief:0", *model_, /*chief=*/true);
  }
  std::string Refusal(const PushPullRequest& message) {
    const auto answer = worker_->Send(message, 1);  // 40 bytes
    store_.Pass(absl::Milliseconds(10));
    EXPECT_TRUE(absl::IsInvalidArgument(answer->status)) << answer->status;
    return std::string(answer->status.message());
  }

  SimulatedStore store_{1, kTasks, kLongLease};
  std::unique_ptr<WorkerModel> model_;
  std::unique_ptr<ScriptedWorker> worker_;
};

TEST_F(WireRequestTest, BulkThatDoesNotFitThePrecisionIsRefused) {
  Start();
  PushPullRequest message = worker_->Message();
  message.pushed_as = WirePrecision::kBFloat16;
  EXPECT_THAT(Refusal(message), HasSubstr("a push of 1 slices takes 20 bytes, but 40 came"));
}

TEST_F(WireRequestTest, ANarrowExchangeIsRefused) {
  Start({.kind = RuleKind::kAdd}, /*exchanges=*/true);
  PushPullRequest message = worker_->Message();
  message.pull = PullWhat::kNothing;
  message.exchange = 0.5;
  message.pushed_as = WirePrecision::kFloat16;
  message.pushed.clear();
  const auto answer = worker_->Send(message, 1);
  store_.Pass(absl::Milliseconds(10));
  EXPECT_THAT(std::string(answer->status.message()), HasSubstr("an elastic exchange is sent in fp32, not fp16"));
}

TEST(WireMessageTest, AnUnknownPrecisionIsRefusedByName) {
  PushPullRequest message = {.pushed_as = WirePrecision::kFloat16, .pulled_as = WirePrecision::kBFloat16};
  PushPullRequest decoded;
  ASSERT_EQ(Decode(Encode(message), decoded), absl::OkStatus());
  EXPECT_EQ(decoded.pushed_as, WirePrecision::kFloat16);
  EXPECT_EQ(decoded.pulled_as, WirePrecision::kBFloat16);
  for (const int unknown : {3, 255}) {
    message.pulled_as = static_cast<WirePrecision>(unknown);
    const absl::Status refused = Decode(Encode(message), decoded);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("unknown wire precision; accepted: 0 fp32, 1 bf16, 2 fp16"));
  }
}

}  // namespace
}  // namespace muster::wire_precision_test
