// One update of a client of a test, by a way of store/way.h.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "muster/store/client/overlapped_push.h"
#include "muster/store/client/store_client.h"
#include "muster/store/testing/way.h"

namespace muster {

// The way's that the client was made for (apply, part_bytes). `gradient(i)` must not lie in the bound memory: in parts
// the new values come while gradients are still sent. What is pipelined is an algorithm's business.
inline absl::StatusOr<StorePushResult> PushBy(const Way& way, StoreClient& client,
                                              absl::FunctionRef<ByteSpan(size_t)> gradient, bool publish_buffers) {
  if (way.sending == Sending::kWhole) return client.PushPull(gradient, {.publish_buffers = publish_buffers});
  OverlappedPush push(client);
  push.Begin();
  for (size_t i = client.binding().variables.size(); i-- > 0;) push.Ready(i, gradient(i));
  return push.Finish(gradient, publish_buffers);
}

}  // namespace muster
