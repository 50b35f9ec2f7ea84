// A client's own updates in the memory of ps on its host (docs/store/direct_apply.md), while that is possible; as long
// as it isn't on, the ps apply what the client sends. Part of StoreClient, and used by operations that can also be done
// directly. Used by the client's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/bytes.h"
#include "muster/store/calls/gate_wait_notice.h"
#include "muster/store/direct/direct_apply.h"
#include "muster/store/messages/store_push.h"

namespace muster {

class StoreClient;

class DirectUpdates {
 public:
  // `client` must outlive it.
  explicit DirectUpdates(StoreClient& client) : client_(client) {}

  bool on() const { return apply_ != nullptr; }
  // Turns it on if the client's options want it and every ps allows it. When called again, it continues with the ps
  // that are there now; with kAuto, and a ps that doesn't let it in any more, it turns it off. Errors: those of the
  // client, and FailedPrecondition: kDirect isn't possible.
  [[nodiscard]] absl::Status Open();
  // Needs on(). If it is off afterwards, push through the ps. `scales`: as FindClipScales.
  absl::StatusOr<StorePushResult> PushPull(absl::FunctionRef<ByteSpan(size_t)> gradient,
                                           const std::vector<double>& scales, const StorePushOptions& options);
  // For an operation on rows: returns what carries it out here; null: the ps does. If it changes something, waits while
  // a ps is cut off from the other hosts (Unavailable: for longer than the patience allows); Cancelled: training has
  // ended. Other errors as Open's.
  absl::StatusOr<DirectApply*> Use(bool changes);
  InPlaceMemory InPlace(size_t variable) const;
  // How far ps `ps` was when this worker's values were pulled; need on().
  uint64_t pulled_version(int ps) const { return apply_->pulled_version(ps); }
  void SetPulledVersion(int ps, uint64_t version) { apply_->SetPulledVersion(ps, version); }
  // Announces that this process writes no more, and turns it off.
  void Close();

 private:
  // `elsewhere`: a ps answers, but isn't found on this host.
  [[nodiscard]] absl::Status Try(bool& elsewhere);
  [[nodiscard]] absl::Status AttachTo(DirectApply& apply, int ps, bool& elsewhere);
  // From now on the ps apply.
  void FallBack();
  // Announces the update, and waits while a ps is held for a checkpoint's cut. It may be off afterwards. Unavailable: a
  // ps is held for longer than the patience allows.
  [[nodiscard]] absl::Status BeginUpdate(uint64_t sequence);
  // nullopt: an update of rows, which only a ps that is cut off holds back.
  [[nodiscard]] absl::Status AwaitRelease(std::optional<uint64_t> sequence);
  // Contributes to one round of the synchronous gate: how the client waits in it. What it does there is DividedRound's.
  absl::StatusOr<StorePushResult> Contribute(absl::FunctionRef<ByteSpan(size_t)> gradient,
                                             const std::vector<double>& scales, const StorePushOptions& options);
  // Returns an error if the wait must end. It may be off afterwards.
  [[nodiscard]] absl::Status CheckPatience(absl::Time give_up, GateWaitNotice& notice);

  StoreClient& client_;
  std::unique_ptr<DirectApply> apply_;  // null: the ps apply
};

}  // namespace muster
