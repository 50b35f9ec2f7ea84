// What a client's pushes say of the work queue (from work_tally.h), and what it tells ps 0 besides. Used by the
// client's thread.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "muster/store/client/store_client.h"
#include "muster/store/work/work_tally.h"

namespace muster {

class StoreClient::Work {
 public:
  // From now on pushes bring the work that `tally` names.
  static void Share(StoreClient& client, std::shared_ptr<WorkTally> tally);
  // Fixes what the next push brings to what has begun by now, though the push is made while the next minibatch is
  // computed.
  static void Seal(StoreClient& client) { static_cast<void>(client.push_.Work()); }

 private:
  friend class StoreClient;
  friend class OverlappedPush;

  // The client has joined: uncounted work of an earlier join goes to others.
  [[nodiscard]] static absl::Status Join(StoreClient& client);
  // The push that brought the work was answered: `pushed`, or dropped.
  [[nodiscard]] static absl::Status Settle(StoreClient& client, bool pushed);
  // Tells ps 0 which units were abandoned. Errors: those of StoreClient.
  [[nodiscard]] static absl::Status GiveUp(StoreClient& client);
};

}  // namespace muster
