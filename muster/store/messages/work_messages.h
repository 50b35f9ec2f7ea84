// The messages about the work queue (docs/work_queue.md), and its state in checkpoints and in a ps's memory; messages.h
// encodes them. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/store/messages/stamp.h"

namespace muster {

// The work that is shared out; the same in every worker.
struct WorkSpec {
  std::string name;
  int64_t rows = 0;  // in an epoch
  int64_t rows_per_unit = 0;
  int64_t epochs = 0;  // 0: for ever

  bool operator==(const WorkSpec&) const = default;
};

struct TakeWorkRequest {
  Stamp stamp;  // its number counts the process's requests of this kind, from 1 on; a repeated request has the same one
  WorkSpec spec;
  uint64_t after = 0;  // the last ticket that has arrived; 0: none
  uint64_t over = 0;   // the last ticket whose step is over
};

// Must come before anything that was begun later is pushed.
struct GiveUpWorkRequest {
  Stamp stamp;
  std::vector<uint64_t> tickets;  // abandoned: others will get these units
};

enum class WorkAnswer : uint8_t {
  kWait = 0,  // the rest is with others, or there is no model yet: ask again
  kUnit = 1,
  kEnd = 2,  // there will be no more
};

struct TakeWorkReply {
  WorkAnswer answer = WorkAnswer::kWait;
  uint64_t ticket = 0;  // of the unit below
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// A unit that isn't done.
struct WorkEntry {
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;
  uint64_t holder = 0;  // 1 + client; 0: none
  uint64_t ticket = 0;
  bool in_update = false;  // belongs to an update of the holder's that this ps has, but hasn't counted
};

struct WorkHolder {
  uint64_t client = 0;
  uint64_t incarnation = 0;
  uint64_t newest = 0;  // number of its newest request
  uint64_t given = 0;   // the ticket in the answer to that; 0: none
  uint64_t last = 0;    // the last ticket of all its lives
};

struct WorkState {
  WorkSpec spec;
  int64_t epoch = 0;
  int64_t next = 0;                 // the first place of that epoch not handed out yet
  std::vector<WorkEntry> entries;   // units before that which aren't done
  std::vector<WorkHolder> holders;  // not in checkpoints
};

}  // namespace muster
