// The messages by which the parts of a checkpoint are written and its manifest committed. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/store/messages/stamp.h"
#include "muster/transport/messages/fields.h"

namespace muster {

// The ps writes its slices and slots as the part `file` of a checkpoint (under its temporary name) if it may write into
// `directory` and sees the announcement of `save_id` there (checkpoints/save_directory.h); else NotFound, and the chief
// sends kExportPart, fetches the part piece by piece and writes it itself. InvalidArgument: names that are none.
struct SavePartRequest {
  Stamp stamp;
  uint64_t chief_epoch = 0;
  std::string directory;
  std::string save_id;
  std::string file;
  uint64_t hold = 0;  // whose mark it is of

  using Fields = FieldList<Field<1, &SavePartRequest::stamp>, Field<2, &SavePartRequest::chief_epoch>,
                           Field<3, &SavePartRequest::directory>, Field<4, &SavePartRequest::save_id>,
                           Field<5, &SavePartRequest::file>, Field<6, &SavePartRequest::hold>>;
};

struct SavePartReply {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;

  using Fields = FieldList<Field<1, &SavePartReply::bytes>, Field<2, &SavePartReply::crc32c>>;
};

// Opens the part for kFetchPart: answered once the ps has put it aside, where it stays until the chief releases the
// mark (MarkRequest), sets another, or fetches nothing for a while (PartSaver::kFetchPatience).
struct ExportPartRequest {
  Stamp stamp;
  uint64_t hold = 0;  // as above
  uint64_t chief_epoch = 0;

  using Fields = FieldList<Field<1, &ExportPartRequest::stamp>, Field<2, &ExportPartRequest::hold>,
                           Field<3, &ExportPartRequest::chief_epoch>>;
};

struct ExportPartReply {
  std::vector<uint64_t> steps;
  using Fields = FieldList<Field<1, &ExportPartReply::steps>>;
};

// What one kFetchPart brings at most, so that neither side needs room for a second copy of a part.
constexpr uint64_t kMostFetchedBytes = 4 << 20;

// The reply's bulk: so many bytes of the open part from the byte `first` on. The part has its bytes in the order of
// InitializeRequest with slots. OutOfRange: it isn't open; InvalidArgument: too many bytes, or some beyond its end.
struct FetchPartRequest {
  Stamp stamp;
  uint64_t chief_epoch = 0;
  uint64_t hold = 0;
  uint64_t first = 0;
  uint64_t bytes = 0;

  using Fields = FieldList<Field<1, &FetchPartRequest::stamp>, Field<2, &FetchPartRequest::chief_epoch>,
                           Field<3, &FetchPartRequest::hold>, Field<4, &FetchPartRequest::first>,
                           Field<5, &FetchPartRequest::bytes>>;
};

// Whether the ps could write the parts of a save `save_id` into `directory`, as in SavePartRequest.
struct SeesDirectoryRequest {
  Stamp stamp;
  uint64_t chief_epoch = 0;
  std::string directory;
  std::string save_id;

  using Fields = FieldList<Field<1, &SeesDirectoryRequest::stamp>, Field<2, &SeesDirectoryRequest::chief_epoch>,
                           Field<3, &SeesDirectoryRequest::directory>, Field<4, &SeesDirectoryRequest::save_id>>;
};

struct SeesDirectoryReply {
  bool sees = false;
  using Fields = FieldList<Field<1, &SeesDirectoryReply::sees>>;
};

// ps 0 commits the manifest (JSON) in `directory`, if it may write there, and unless another client has the lease by
// now. With an empty directory it only answers whether the lease still holds (then the chief commits, whose disk ps 0
// can't see).
struct CommitCheckpointRequest {
  Stamp stamp;
  uint64_t chief_epoch = 0;
  std::string directory;
  std::string manifest;
  int64_t keep = 0;                 // then removes all but the newest so many (Retention); 0: keeps all
  double preserve_every_hours = 0;  // but keeps one every so often for ever; 0: none

  using Fields =
      FieldList<Field<1, &CommitCheckpointRequest::stamp>, Field<2, &CommitCheckpointRequest::chief_epoch>,
                Field<3, &CommitCheckpointRequest::directory>, Field<4, &CommitCheckpointRequest::manifest>,
                Field<5, &CommitCheckpointRequest::keep>, Field<6, &CommitCheckpointRequest::preserve_every_hours>>;
};

}  // namespace muster
