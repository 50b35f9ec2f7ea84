// The chief's side of the cut of a checkpoint: brings all ps to one step and has them mark it
// (docs/store/checkpoints.md). Blocks as the client's operations do: for a few round trips.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "muster/store/client/store_client.h"

namespace muster {

struct CheckpointCut {
  uint64_t hold = 0;        // the hold whose part SavePart and ExportPart request
  int64_t global_step = 0;  // every ps has marked exactly the updates that this counts
  std::string work;         // a WorkState without what these updates contain; empty: no work is shared out
};

// OutOfRange: not possible now (a ps was restarted, a push took too long, an earlier part is still being written); try
// again. Other errors are those of StoreClient.
absl::StatusOr<CheckpointCut> CutCheckpoint(StoreClient& client);

}  // namespace muster
