// What a client's pushes say of the work queue (work_tally.h has it), and what it tells ps 0 beside them. Used by the
// client's thread.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "muster/store/client/store_client.h"
#include "muster/store/work/work_tally.h"

namespace muster {

class StoreClient::Work {
 public:
  // From now on pushes bring what `tally` says.
  static void Share(StoreClient& client, std::shared_ptr<WorkTally> tally);
  // The next push brings what has begun until now, though it is made while the next minibatch is computed.
  static void Seal(StoreClient& client) { static_cast<void>(client.push_.Work()); }

 private:
  friend class StoreClient;
  friend class OverlappedPush;

  // It has joined: for others is what an earlier join had brought and isn't counted.
  [[nodiscard]] static absl::Status Join(StoreClient& client);
  // The push that brought it was answered: `pushed`, or dropped.
  [[nodiscard]] static absl::Status Settle(StoreClient& client, bool pushed);
  // Tells ps 0 what was abandoned. Errors: those of StoreClient.
  [[nodiscard]] static absl::Status GiveUp(StoreClient& client);
};

}  // namespace muster
