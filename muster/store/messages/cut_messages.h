// The messages of a checkpoint's cut at one step (docs/store/checkpoints.md); messages.h encodes them. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/store/messages/stamp.h"

namespace muster {

struct HoldRequest {
  Stamp stamp;  // its sequence number is the hold's
  uint64_t chief_epoch = 0;
};

struct HoldReply {
  std::vector<uint64_t> begun;  // by client: the highest number that its current life has begun here; 0: none
  uint64_t round = 0;           // with a synchronous gate
  bool in_parts = false;        // some parts of one of these updates have come, but not the last
};

struct MarkRequest {
  Stamp stamp;
  uint64_t chief_epoch = 0;
  uint64_t hold = 0;
  std::vector<uint64_t> through;  // by client: the newest update that is inside
  uint64_t round = 0;             // with a synchronous gate: the first round outside
  bool release = false;           // no mark will come: end the hold
  bool patient = false;           // some ps has an update in_parts: its sender may be computing the rest
};

struct MarkReply {
  int64_t global_step = 0;          // only from ps 0
  std::vector<uint32_t> missing;    // clients that are gone and whose newest update isn't here
  std::vector<uint32_t> uncounted;  // ps 0: clients whose newest update is inside, but not counted yet
  std::string work;                 // ps 0: the WorkState at the mark; empty: no work is shared out
};

}  // namespace muster
