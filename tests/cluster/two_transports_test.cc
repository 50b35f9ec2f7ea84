// A ps with one worker on its own host, in shared memory, and one on another, over TCP: their gradients don't mix.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/store/client/store_client.h"
#include "muster/store/service/store_service.h"
#include "muster/store/testing/joining.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster::two_transports_test {
namespace {

TEST(TwoTransports, APsTakesGradientsOverBoth) {
  constexpr int kElements = 100'000;  // enough for the shared memory
  TcpEventLoop loop;
  TcpTransport shared(loop, {}, {.shared_memory = {.enabled = true}});
  TcpTransport tcp(loop, {}, {.shared_memory = {.enabled = false}});
  StoreService service(loop, {.workers = {"worker:0", "worker:1"},
                              .files = &PosixFileSystem(),
                              .background = [](absl::AnyInvocable<void()> work) { work(); }});
  const std::unique_ptr<Listener> listener = *shared.Listen("127.0.0.1:0", service);
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {kElements}}};
  std::vector<float> values[2] = {std::vector<float>(kElements), std::vector<float>(kElements)};
  std::vector<std::unique_ptr<StoreClient>> workers;
  for (int i = 0; i < 2; ++i) {
    Transport& transport = i == 0 ? static_cast<Transport&>(shared) : tcp;
    workers.push_back(std::make_unique<StoreClient>(transport, std::vector<std::string>{listener->address()},
                                                    StoreClientOptions{.task = absl::StrCat("worker:", i)}));
    const ModelBinding binding = {variables,
                                  *PlaceVariables(variables, 1, Placement::kRoundRobin, {}),
                                  RuleSpec{.learning_rate = 1},
                                  {AsMutableBytes(values[i].data(), kElements)}};
    ASSERT_EQ(JoinToTrain(*workers[i], binding, /*chief=*/i == 0), absl::OkStatus());
  }
  ASSERT_EQ(listener->stats().in_shared_memory.size(), 1U);
  for (int step = 1; step <= 5; ++step) {
    for (int i = 0; i < 2; ++i) {
      const std::vector<float> gradient(kElements, i == 0 ? -1.0F : -10.0F);
      ASSERT_EQ(workers[i]->PushPull([&](size_t) { return AsBytes(gradient.data(), gradient.size()); }, {}).status(),
                absl::OkStatus());
      const auto expected = static_cast<float>((step - 1) * 11 + (i == 0 ? 1 : 11));
      EXPECT_EQ(values[i].front(), expected) << "worker " << i << ", step " << step;
      EXPECT_EQ(values[i].back(), expected) << "worker " << i << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace muster::two_transports_test
