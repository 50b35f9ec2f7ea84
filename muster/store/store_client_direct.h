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
  // With client.direct_ set. `scales`: as ClipScales.
  static absl::StatusOr<StorePushResult> PushPull(StoreClient& client, absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                  const std::vector<double>& scales, const StorePushOptions& options);
  static InPlaceMemory InPlace(const StoreClient& client, size_t variable);
  // This process writes no more.
  static void Close(StoreClient& client);

 private:
  [[nodiscard]] static absl::Status Try(StoreClient& client);
  // Announces it, and waits while a ps is held for the cut of a checkpoint. Unavailable: one is, for longer than the
  // patience allows.
  [[nodiscard]] static absl::Status BeginUpdate(StoreClient& client, uint64_t sequence);
  [[nodiscard]] static absl::Status AwaitCut(StoreClient& client, uint64_t sequence);
  [[nodiscard]] absl::Status VisitOne(StoreClient& client, int ps);

  DirectApply apply_;
};

}  // namespace muster
