// How a client comes to apply its updates itself, and does (docs/store_protocol.md, "Direct apply"). Part of
// StoreClient: included by its own files only, and by operations that have a direct way too.
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
  // For an operation in a file of its own: who carries it out here; null: the ps does. Cancelled: training has ended,
  // and the operation would change something. Other errors as Open's.
  static absl::StatusOr<DirectApply*> Use(StoreClient& client, bool changes);
  static InPlaceMemory InPlace(const StoreClient& client, size_t variable);
  // This process writes no more.
  static void Close(StoreClient& client);

 private:
  [[nodiscard]] static absl::Status Try(StoreClient& client);
  // Announces it, and waits while a ps is held for the cut of a checkpoint.
  [[nodiscard]] static absl::Status BeginUpdate(StoreClient& client, uint64_t sequence);
  [[nodiscard]] absl::Status VisitOne(StoreClient& client, int ps);

  DirectApply apply_;
};

}  // namespace muster
