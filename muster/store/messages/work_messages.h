// The messages about the work queue (docs/work_queue.md), and its state as checkpoints and a ps's memory keep it. Plain
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/store/messages/stamp.h"
#include "muster/transport/messages/fields.h"

namespace muster {

// Units that one worker may have: a ps keeps some bytes of each.
constexpr size_t kMostWorkInHand = 256;

// What is shared out; the same in every worker.
struct WorkSpec {
  std::string name;
  int64_t rows = 0;  // in an epoch
  int64_t rows_per_unit = 0;
  int64_t epochs = 0;  // 0: for ever

  bool operator==(const WorkSpec&) const = default;

  using Fields = FieldList<Field<1, &WorkSpec::name>, Field<2, &WorkSpec::rows>, Field<3, &WorkSpec::rows_per_unit>,
                           Field<4, &WorkSpec::epochs>>;
};

struct TakeWorkRequest {
  Stamp stamp;  // its number counts the process's requests of this kind, from 1 on; a repeated request has the same one
  WorkSpec spec;
  uint64_t after = 0;  // the last ticket that has arrived; 0: none
  uint64_t over = 0;   // the last ticket whose step is over

  using Fields = FieldList<Field<1, &TakeWorkRequest::stamp>, Field<2, &TakeWorkRequest::spec>,
                           Field<3, &TakeWorkRequest::after>, Field<4, &TakeWorkRequest::over>>;
};

// Must come before anything that was begun later is pushed.
struct GiveUpWorkRequest {
  Stamp stamp;
  std::vector<uint64_t> tickets;  // that nothing comes of: others are to get these units

  using Fields = FieldList<Field<1, &GiveUpWorkRequest::stamp>, Field<2, &GiveUpWorkRequest::tickets>>;
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

  using Fields =
      FieldList<Field<1, &TakeWorkReply::answer>, Field<2, &TakeWorkReply::ticket>, Field<3, &TakeWorkReply::epoch>,
                Field<4, &TakeWorkReply::begin>, Field<5, &TakeWorkReply::end>>;
};

// A unit that isn't done.
struct WorkEntry {
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;
  uint64_t holder = 0;  // 1 + client; 0: none
  uint64_t ticket = 0;
  bool in_update = false;  // of an update of the holder's that this ps has, but hasn't counted

  using Fields = FieldList<Field<1, &WorkEntry::epoch>, Field<2, &WorkEntry::begin>, Field<3, &WorkEntry::end>,
                           Field<4, &WorkEntry::holder>, Field<5, &WorkEntry::ticket>, Field<6, &WorkEntry::in_update>>;
};

struct WorkHolder {
  uint64_t client = 0;
  uint64_t incarnation = 0;
  uint64_t newest = 0;  // number of its newest request
  uint64_t given = 0;   // the ticket in the answer to that; 0: none
  uint64_t last = 0;    // the last ticket of all its lives

  using Fields = FieldList<Field<1, &WorkHolder::client>, Field<2, &WorkHolder::incarnation>,
                           Field<3, &WorkHolder::newest>, Field<4, &WorkHolder::given>, Field<5, &WorkHolder::last>>;
};

struct WorkState {
  WorkSpec spec;
  int64_t epoch = 0;
  int64_t next = 0;                 // the first place of that epoch not handed out yet
  std::vector<WorkEntry> entries;   // units before that which aren't done
  std::vector<WorkHolder> holders;  // not in checkpoints

  using Fields = FieldList<Field<1, &WorkState::spec>, Field<2, &WorkState::epoch>, Field<3, &WorkState::next>,
                           Field<4, &WorkState::entries>, Field<5, &WorkState::holders>>;
};

}  // namespace muster
