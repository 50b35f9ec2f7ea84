// What the chief requests from the ps for a checkpoint, once they have marked a cut (cut_leader.h);
// train/saving/saver.h puts the checkpoint together. Each blocks until it is answered: for
// StoreClientOptions::transfer_patience at most. Errors: those of StoreClient.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/client/store_client.h"
#include "muster/store/messages/messages.h"

namespace muster {

// Has that ps write its part as `directory`/`file`. `hold`: the cut that the part is of.
absl::StatusOr<SavePartReply> SavePart(StoreClient& client, int ps, const std::string& directory,
                                       const std::string& save_id, const std::string& file, uint64_t hold);
// The same part, into memory of this process.
absl::StatusOr<PartSnapshot> ExportPart(StoreClient& client, int ps, uint64_t hold);
// The same part, fetched and written to `path` by this process, as that ps would write it. Has kMostFetchedBytes of it
// in memory at a time. IsSaveTrouble: the file can't be written.
absl::StatusOr<SavePartReply> FetchPartInto(StoreClient& client, int ps, uint64_t hold, FileSystem& files,
                                            const std::string& path);
// Returns the ps that would refuse SavePart for that directory and save, because they don't see its announcement.
absl::StatusOr<std::vector<int>> FindPsElsewhere(StoreClient& client, const std::string& directory,
                                                 const std::string& save_id);
// Has ps 0 rename the manifest into place and remove old checkpoints, if this process is still the chief.
[[nodiscard]] absl::Status CommitCheckpoint(StoreClient& client, const std::string& directory,
                                            const std::string& manifest, int keep = 0, double preserve_every_hours = 0);

}  // namespace muster
