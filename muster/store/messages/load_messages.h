// The messages by which somebody has a checkpoint loaded while training goes on. Plain values.
#pragma once

#include <cstdint>
#include <string>

#include "muster/store/messages/stamp.h"
#include "muster/transport/messages/fields.h"

namespace muster {

// Any process of the job, to ps 0: asks the chief to load the checkpoint at `path` (as the chief sees it) into every
// ps. The answer comes afterwards, with the global step that training continues from, or with the chief's error.
struct LoadCheckpointRequest {
  std::string path;
  using Fields = FieldList<Field<1, &LoadCheckpointRequest::path>>;
};

struct LoadCheckpointReply {
  int64_t global_step = 0;
  using Fields = FieldList<Field<1, &LoadCheckpointReply::global_step>>;
};

// The chief, to ps 0: the result of the requested load.
struct ReportLoadRequest {
  Stamp stamp;
  std::string error;  // empty: it succeeded
  int64_t global_step = 0;

  using Fields = FieldList<Field<1, &ReportLoadRequest::stamp>, Field<2, &ReportLoadRequest::error>,
                           Field<3, &ReportLoadRequest::global_step>>;
};

}  // namespace muster
