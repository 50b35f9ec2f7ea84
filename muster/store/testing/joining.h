// How a client of a test becomes part of a training: the same requests, in the same order, as a session makes.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/status_macros.h"
#include "muster/store/client/store_client.h"

namespace muster {

// The bound memory is the initial value. The chief has the model, without having waited for it or pulled.
[[nodiscard]] inline absl::Status JoinAsChief(StoreClient& client, const ModelBinding& binding) {
  RETURN_IF_ERROR(client.Join(/*chief=*/true));
  client.Bind(binding);
  return client.Initialize(/*global_step=*/0, /*minibatches=*/0, nullptr);
}

// Waits for the values that a chief, this one or another, has brought, and pulls them.
[[nodiscard]] inline absl::Status PullWhenReady(StoreClient& client) {
  RETURN_IF_ERROR(client.AwaitReady(absl::InfiniteFuture()).status());
  return client.Pull(PullWhat::kEverything);
}

[[nodiscard]] inline absl::Status JoinAsWorker(StoreClient& client, const ModelBinding& binding) {
  RETURN_IF_ERROR(client.Join(/*chief=*/false));
  client.Bind(binding);
  return PullWhenReady(client);
}

// Either of them, ready to train.
[[nodiscard]] inline absl::Status JoinToTrain(StoreClient& client, const ModelBinding& binding, bool chief) {
  if (!chief) return JoinAsWorker(client, binding);
  RETURN_IF_ERROR(JoinAsChief(client, binding));
  return PullWhenReady(client);
}

}  // namespace muster
