// How a test's client joins a training: with the same requests, in the same order, as a session.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/status_macros.h"
#include "muster/store/client/store_client.h"

namespace muster {

// The bound memory gives the initial values. Afterwards the chief has the model, without a wait or a pull.
[[nodiscard]] inline absl::Status JoinAsChief(StoreClient& client, const ModelBinding& binding) {
  RETURN_IF_ERROR(client.Join(/*chief=*/true));
  client.Bind(binding);
  return client.Initialize(/*global_step=*/0, /*minibatches=*/0, nullptr);
}

// Waits for the values that a chief (this one or another) has loaded, and pulls them.
[[nodiscard]] inline absl::Status PullWhenReady(StoreClient& client) {
  RETURN_IF_ERROR(client.AwaitReady(absl::InfiniteFuture()).status());
  return client.Pull(PullWhat::kEverything);
}

[[nodiscard]] inline absl::Status JoinAsWorker(StoreClient& client, const ModelBinding& binding) {
  RETURN_IF_ERROR(client.Join(/*chief=*/false));
  client.Bind(binding);
  return PullWhenReady(client);
}

// As chief or as worker, ready to train.
[[nodiscard]] inline absl::Status JoinToTrain(StoreClient& client, const ModelBinding& binding, bool chief) {
  if (!chief) return JoinAsWorker(client, binding);
  RETURN_IF_ERROR(JoinAsChief(client, binding));
  return PullWhenReady(client);
}

}  // namespace muster
