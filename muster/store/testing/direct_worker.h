// A worker for tests that can apply its updates itself, in the memory of ps on a simulated loop.
#pragma once

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/base/status_macros.h"
#include "muster/store/testing/simulated_store.h"

namespace muster {

inline const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {300, 120}},  // three stripes
                                                     {.name = "mean", .shape = {3}, .kind = VariableKind::kBuffer},
                                                     {.name = "d", .dtype = DType::kFloat64, .shape = {50}},
                                                     {.name = "b", .shape = {7}}};

// Joined, bound, and ready to train with values of phase 1.
struct DirectWorker {
  DirectWorker(SimulatedStore& store, const std::string& task, bool chief, ApplyChoice apply,
               const OptimizerSpec& optimizer, const Partitioning& partitioning = {})
      : model(kVariables, optimizer.rule, static_cast<int>(store.addresses().size()), partitioning),
        client(store.Client(task, {.patience = absl::Seconds(20), .apply = apply})),
        chief(chief) {
    model.binding.optimizer = optimizer;
    model.Fill(1);
    ready = Start();
  }
  absl::Status Start() {
    RETURN_IF_ERROR(client->Join(chief));
    client->Bind(model.binding);
    if (chief && !client->ready()) RETURN_IF_ERROR(client->Initialize(0, 0, nullptr));
    RETURN_IF_ERROR(client->AwaitReady(absl::InfiniteFuture()).status());
    return client->Pull(PullWhat::kEverything);
  }
  // Pushes a gradient whose every element is `gradient`.
  absl::StatusOr<StorePushResult> Push(double gradient) {
    WorkerModel gradients(kVariables, {}, 1);
    for (size_t i = 0; i < kVariables.size(); ++i) {
      const size_t elements = kVariables[i].elements();
      const std::vector<float> narrow(elements, static_cast<float>(gradient));
      const std::vector<double> wide(elements, gradient);
      const void* from = kVariables[i].dtype == DType::kFloat64 ? static_cast<const void*>(wide.data()) : narrow.data();
      std::memcpy(gradients.memory[i].data(), from, gradients.memory[i].size());
    }
    return client->PushPull(
        [&](size_t i) {
          return kVariables[i].kind == VariableKind::kTrainable ? ByteSpan(gradients.memory[i]) : ByteSpan();
        },
        {.publish_buffers = chief});
  }

  WorkerModel model;
  std::unique_ptr<StoreClient> client;
  const bool chief;
  absl::Status ready;
};

inline nlohmann::json Status(DirectWorker& worker, int ps = 0) {
  return nlohmann::json::parse(worker.client->ps_calls().Status(ps).value_or("{}"));
}

inline const OptimizerSpec kPlain = RuleSpec{.kind = RuleKind::kSgd, .learning_rate = 1};

}  // namespace muster
