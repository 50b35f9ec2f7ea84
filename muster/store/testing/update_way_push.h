// Pushes one update of a test's client by a way of store/testing/update_way.h.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "muster/store/client/overlapped_push.h"
#include "muster/store/client/store_client.h"
#include "muster/store/testing/update_way.h"

namespace muster {

// `client` must be made for `way` (apply, part_bytes). `gradient(i)` must not lie in the bound memory: in parts, new
// values come while gradients are still being sent. Pipelining is up to an algorithm.
inline absl::StatusOr<StorePushResult> PushBy(const UpdateWay& way, StoreClient& client,
                                              absl::FunctionRef<ByteSpan(size_t)> gradient, bool publish_buffers) {
  if (way.sending == Sending::kWhole) return client.PushPull(gradient, {.publish_buffers = publish_buffers});
  OverlappedPush push(client);
  push.Begin();
  for (size_t i = client.binding().variables.size(); i-- > 0;) push.Ready(i, gradient(i));
  return push.Finish(gradient, publish_buffers);
}

}  // namespace muster
