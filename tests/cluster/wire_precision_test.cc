// Gradients and parameters sent as halves over real connections, by TCP and shared memory, whole and in parts, equal a
// plain reference to the bit.
#include "muster/store/model/wire_precision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/files/file_system.h"
#include "muster/store/testing/half_reference.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/simulated_store.h"
#include "muster/store/testing/update_way.h"
#include "muster/store/testing/update_way_push.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster::wire_precision_test {
namespace {

constexpr double kRate = 0.25;  // a float times this is exact

// One variable with several stripes, long enough to be sent beside the stream, and ones that are never narrowed.
const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {40001}},
                                              {.name = "b", .shape = {3}},
                                              {.name = "d", .dtype = DType::kFloat64, .shape = {7}},
                                              {.name = "mean", .shape = {9}, .kind = VariableKind::kBuffer}};

class WireOverConnectionsTest : public ::testing::TestWithParam<UpdateWay> {
 protected:
  // One ps, and a worker whose messages have those precisions.
  struct Run {
    explicit Run(const WireOptions& wire) {
      worker = std::make_unique<StoreClient>(
          transport, std::vector<std::string>{listener->address()},
          StoreClientOptions{.task = "worker:0", .wire = wire, .part_bytes = GetParam().part_bytes()});
      model.Fill(0.5);
      gradients.Fill(1.5);
      for (const size_t i : {0, 1}) {
        std::vector<float> awkward(gradients.memory[i].size() / sizeof(float));
        for (size_t k = 0; k < awkward.size(); ++k) awkward[k] = std::min(Awkward(k), 60000.0F);
        std::memcpy(gradients.memory[i].data(), awkward.data(), gradients.memory[i].size());
      }
    }
    absl::Status Push() {
      return PushBy(
                 GetParam(), *worker, [this](size_t i) { return ByteSpan(gradients.memory[i]); },
                 /*publish_buffers=*/true)
          .status();
    }

    TcpEventLoop loop;
    TcpTransport transport{loop, {}, {.shared_memory = {.enabled = GetParam().transport == TransportChoice::kAuto}}};
    StoreService service{
        loop, {.workers = {"worker:0"}, .files = &PosixFileSystem(), .background = [](absl::AnyInvocable<void()> work) {
                 work();
               }}};
    std::unique_ptr<Listener> listener = *transport.Listen("127.0.0.1:0", service);
    WorkerModel model{kVariables, {.learning_rate = kRate}, 1};
    WorkerModel gradients{kVariables, {.learning_rate = kRate}, 1};
    std::unique_ptr<StoreClient> worker;
  };
};

// A worker that applies its own updates sends nothing, and pipelining is the algorithm's business.
INSTANTIATE_TEST_SUITE_P(Ways, WireOverConnectionsTest,
                         ::testing::ValuesIn(Without(kWays, {"Direct", "SharedMemoryPipelined", "TcpPipelined"})),
                         NameOfWay);

TEST_P(WireOverConnectionsTest, EveryPairOfPrecisionsDoesWhatTheReferenceDoes) {
  for (const WirePrecision pushed : kAllPrecisions) {
    for (const WirePrecision pulled : kAllPrecisions) {
      SCOPED_TRACE(testing::Message() << WirePrecisionName(pushed) << ", " << WirePrecisionName(pulled));
      Run run({.gradients = pushed, .parameters = pulled});
      std::vector<std::vector<float>> expected = {run.model.Values<float>(0), run.model.Values<float>(1)};
      std::vector<double> wide = run.model.Values<double>(2);
      ASSERT_EQ(JoinToTrain(*run.worker, run.model.binding, /*chief=*/true), absl::OkStatus());
      EXPECT_EQ(run.listener->stats().in_shared_memory.size(), GetParam().transport == TransportChoice::kAuto ? 1 : 0);
      for (int step = 0; step < 2; ++step) {
        ASSERT_EQ(run.Push(), absl::OkStatus());
        for (const size_t i : {0, 1}) {
          const auto gradient = run.gradients.Values<float>(i), values = run.model.Values<float>(i);
          for (size_t k = 0; k < values.size(); ++k) {
            expected[i][k] -= static_cast<float>(kRate) * Rounded(pushed, gradient[k]);
            ASSERT_EQ(std::bit_cast<uint32_t>(values[k]), std::bit_cast<uint32_t>(Rounded(pulled, expected[i][k])))
                << kVariables[i].name << "[" << k << "]: " << values[k] << ", gradient " << gradient[k];
          }
        }
        for (size_t k = 0; k < wide.size(); ++k) wide[k] -= kRate * run.gradients.Values<double>(2)[k];
        EXPECT_EQ(run.model.Values<double>(2), wide);
      }
      // The ps's own values were never narrowed.
      ASSERT_EQ(run.worker->Pull(PullWhat::kEverything), absl::OkStatus());
      for (const size_t i : {0, 1}) EXPECT_TRUE(run.model.Values<float>(i) == expected[i]) << kVariables[i].name;
    }
  }
}

}  // namespace
}  // namespace muster::wire_precision_test
