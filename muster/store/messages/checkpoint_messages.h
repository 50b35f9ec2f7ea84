// The messages that have the parts of a checkpoint written and its manifest committed; messages.h encodes them. Plain
// values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/store/messages/stamp.h"

namespace muster {

// The ps writes its slices and slots as the part `file` of a checkpoint into `directory` (under its temporary name) if
// it sees the announcement of `save_id` there; else NotFound, and the chief sends kExportPart and writes the part
// itself.
struct SavePartRequest {
  Stamp stamp;
  uint64_t chief_epoch = 0;
  std::string directory;
  std::string save_id;
  std::string file;
  uint64_t hold = 0;  // the hold whose mark the part shows
};

struct SavePartReply {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
};

struct ExportPartRequest {
  Stamp stamp;
  uint64_t hold = 0;  // as above
};

// The reply's bulk: as in InitializeRequest with slots.
struct ExportPartReply {
  std::vector<uint64_t> steps;
};

// ps 0 commits the manifest (JSON) in `directory`, unless another client has the lease by now. With an empty directory
// it only answers whether the lease still holds (then the chief commits, whose disk ps 0 can't see).
struct CommitCheckpointRequest {
  Stamp stamp;
  uint64_t chief_epoch = 0;
  std::string directory;
  std::string manifest;
  int64_t keep = 0;                 // afterwards removes all but this many of the newest (Retention); 0: keeps all
  double preserve_every_hours = 0;  // but preserves one per this many hours for ever; 0: none
};

}  // namespace muster
