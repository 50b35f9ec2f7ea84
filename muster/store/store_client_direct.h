// How a client comes to apply its updates itself, and does (docs/store/direct_apply.md). Part of
// StoreClient: included by its own files only, and by operations that have a direct way too.
#pragma once

#include "muster/store/direct_apply.h"
#include "muster/store/long_wait.h"

namespace muster {

class StoreClient::Direct {
 public:
  // Sets client.direct_ if the client's options want it and every ps allows it. Called again, it goes on with whoever
  // is there now; with kAuto and a ps that has no way in any more it sets client.direct_ to null, and the ps apply.
  // Errors: those of the client, and FailedPrecondition: kDirect can't be had.
  [[nodiscard]] static absl::Status Open(StoreClient& client);
  // With client.direct_ set; through the ps, if it is null afterwards. `scales`: as FindClipScales.
  static absl::StatusOr<StorePushResult> PushPull(StoreClient& client, absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                  const std::vector<double>& scales, const StorePushOptions& options);
  // For an operation in a file of its own: who carries it out here; null: the ps does. Cancelled: training has ended,
  // and the operation would change something. Other errors as Open's.
  static absl::StatusOr<DirectApply*> Use(StoreClient& client, bool changes);
  static InPlaceMemory InPlace(const StoreClient& client, size_t variable);
  // This process writes no more.
  static void Close(StoreClient& client);

 private:
  // `elsewhere`: a ps answers, but isn't found on this host.
  [[nodiscard]] static absl::Status Try(StoreClient& client, bool& elsewhere);
  // From now on through the ps.
  static void StepBack(StoreClient& client);
  // Announces it, and waits while a ps is held for the cut of a checkpoint. client.direct_ may be null afterwards.
  // Unavailable: one is held for longer than the patience allows.
  [[nodiscard]] static absl::Status BeginUpdate(StoreClient& client, uint64_t sequence);
  [[nodiscard]] static absl::Status AwaitCut(StoreClient& client, uint64_t sequence);
  [[nodiscard]] absl::Status VisitOne(StoreClient& client, int ps, bool& elsewhere);
  // One round of the synchronous gate: store_client_divided.cc.
  static absl::StatusOr<StorePushResult> Contribute(StoreClient& client, absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                    const std::vector<double>& scales, const StorePushOptions& options);
  // Nobody can wait any longer, or has to: why. client.direct_ may be null afterwards.
  [[nodiscard]] static absl::Status LookAround(StoreClient& client, absl::Time give_up, LongWait& wait);

  DirectApply apply_;
};

}  // namespace muster
