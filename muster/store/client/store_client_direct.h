// Lets a client apply its own updates (docs/store/direct_apply.md). Part of StoreClient: included only by
// its own files, and by operations that can also be done directly.
#pragma once

#include "muster/store/client/long_wait.h"
#include "muster/store/direct/direct_apply.h"

namespace muster {

class StoreClient::Direct {
 public:
  // Sets client.direct_ if the client's options want it and every ps allows it. When called again, it continues with
  // the ps that are there now; with kAuto, and a ps that doesn't let it in any more, it sets client.direct_ to null,
  // and the ps apply. Errors: those of the client, and FailedPrecondition: kDirect isn't possible.
  [[nodiscard]] static absl::Status Open(StoreClient& client);
  // Needs client.direct_; if that is null afterwards, push through the ps. `scales`: as FindClipScales.
  static absl::StatusOr<StorePushResult> PushPull(StoreClient& client, absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                  const std::vector<double>& scales, const StorePushOptions& options);
  // For an operation in another file: returns what carries it out here; null: the ps does. Cancelled: training has
  // ended, and the operation would change something. Other errors as Open's.
  static absl::StatusOr<DirectApply*> Use(StoreClient& client, bool changes);
  static InPlaceMemory InPlace(const StoreClient& client, size_t variable);
  // Announces that this process writes no more.
  static void Close(StoreClient& client);

 private:
  // `elsewhere`: a ps answers, but isn't found on this host.
  [[nodiscard]] static absl::Status Try(StoreClient& client, bool& elsewhere);
  // From now on the ps apply.
  static void FallBack(StoreClient& client);
  // Announces the update, and waits while a ps is held for a checkpoint's cut. client.direct_ may be null afterwards.
  // Unavailable: a ps is held for longer than the patience allows.
  [[nodiscard]] static absl::Status BeginUpdate(StoreClient& client, uint64_t sequence);
  [[nodiscard]] static absl::Status AwaitCut(StoreClient& client, uint64_t sequence);
  [[nodiscard]] absl::Status AttachTo(StoreClient& client, int ps, bool& elsewhere);
  // Contributes to one round of the synchronous gate: store_client_divided.cc.
  static absl::StatusOr<StorePushResult> Contribute(StoreClient& client, absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                    const std::vector<double>& scales, const StorePushOptions& options);
  // Returns an error if the wait must end. client.direct_ may be null afterwards.
  [[nodiscard]] static absl::Status CheckPatience(StoreClient& client, absl::Time give_up, LongWait& wait);

  DirectApply apply_;
};

}  // namespace muster
