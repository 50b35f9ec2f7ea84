// The messages of the cut of a checkpoint at one step (docs/store/checkpoints.md). Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/store/messages/stamp.h"
#include "muster/transport/messages/fields.h"

namespace muster {

struct HoldRequest {
  Stamp stamp;  // its sequence number is the hold's
  uint64_t chief_epoch = 0;

  using Fields = FieldList<Field<1, &HoldRequest::stamp>, Field<2, &HoldRequest::chief_epoch>>;
};

struct HoldReply {
  std::vector<uint64_t> begun;  // by client: the highest number that its present life has begun here; 0: none
  uint64_t round = 0;           // of a synchronous gate
  bool in_parts = false;        // of one of them parts have come, and not the last

  using Fields = FieldList<Field<1, &HoldReply::begun>, Field<2, &HoldReply::round>, Field<3, &HoldReply::in_parts>>;
};

struct MarkRequest {
  Stamp stamp;
  uint64_t chief_epoch = 0;
  uint64_t hold = 0;
  std::vector<uint64_t> through;  // by client: the newest update that is inside
  uint64_t round = 0;             // with a synchronous gate: the first round outside
  bool release = false;           // no mark will come: end the hold
  bool patient = false;           // some ps has an update in_parts: its sender may be computing the rest

  using Fields = FieldList<Field<1, &MarkRequest::stamp>, Field<2, &MarkRequest::chief_epoch>,
                           Field<3, &MarkRequest::hold>, Field<4, &MarkRequest::through>, Field<5, &MarkRequest::round>,
                           Field<6, &MarkRequest::release>, Field<7, &MarkRequest::patient>>;
};

struct MarkReply {
  int64_t global_step = 0;          // ps 0
  std::vector<uint32_t> missing;    // clients that are gone: their newest update isn't here
  std::vector<uint32_t> uncounted;  // ps 0: clients whose newest update is inside, and not counted yet
  std::string work;                 // ps 0: the WorkState at the mark; empty: nothing is shared out
  std::vector<uint32_t> counted;    // ps 0: clients of which an update was counted between the hold and the mark

  using Fields = FieldList<Field<1, &MarkReply::global_step>, Field<2, &MarkReply::missing>,
                           Field<3, &MarkReply::uncounted>, Field<4, &MarkReply::work>, Field<5, &MarkReply::counted>>;
};

}  // namespace muster
