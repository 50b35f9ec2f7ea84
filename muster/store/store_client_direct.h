// How a client comes to apply its updates itself, and does (docs/store_protocol.md, "Direct apply"). Part of
// StoreClient: included by its own files only.
#pragma once

#include "muster/store/direct_apply.h"

namespace muster {

class StoreClient::Direct {
 public:
  // Sets client.direct_ if the client's options want it and every ps allows it. Called again, it goes on with whoever
  // is there now, for as long as the client's patience lasts. Errors: those of the client, and FailedPrecondition as
  // AwaitReady says.
  [[nodiscard]] static absl::Status Open(StoreClient& client);
  // With client.direct_ set.
  static absl::StatusOr<StorePushResult> PushPull(StoreClient& client, absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                  const StorePushOptions& options);
  static InPlaceMemory InPlace(const StoreClient& client, size_t variable);
  // This process writes no more.
  static void Close(StoreClient& client);

 private:
  [[nodiscard]] static absl::Status Try(StoreClient& client);
  // Announces it, and waits while a ps is held for the cut of a checkpoint.
  [[nodiscard]] static absl::Status BeginUpdate(StoreClient& client, uint64_t sequence);
  [[nodiscard]] absl::Status VisitOne(StoreClient& client, int ps);
  // One round of the synchronous gate: store_client_divided.cc.
  static absl::StatusOr<StorePushResult> Contribute(StoreClient& client, absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                    const StorePushOptions& options);
  // Nobody can wait any longer, or has to: why.
  [[nodiscard]] static absl::Status LookAround(StoreClient& client, absl::Time give_up);

  DirectApply apply_;
};

}  // namespace muster
