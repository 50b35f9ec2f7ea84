// The messages with which a worker pushes gradients and pulls values. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "muster/optim/staleness_scale.h"
#include "muster/store/messages/stamp.h"
#include "muster/store/messages/update_part.h"
#include "muster/store/messages/work_range.h"
#include "muster/store/model/model.h"
#include "muster/store/model/wire_precision.h"
#include "muster/transport/messages/fields.h"

namespace muster {

enum class PullWhat : uint8_t { kNothing = 0, kTrainable = 1, kEverything = 2 };

// Whether such a pull takes variables of that kind along. Tables of rows never come as a whole.
inline bool Pulls(PullWhat what, VariableKind kind) {
  if (kind == VariableKind::kRows) return false;
  return what == PullWhat::kEverything || (what == PullWhat::kTrainable && kind == VariableKind::kTrainable);
}

// Bulk: for each pushed slice its gradient (trainable) or its new value (buffer). The reply's bulk: the slices asked
// for, in order; of an update in parts see push_part.h.
struct PushPullRequest {
  Stamp stamp;
  std::vector<uint32_t> pushed;  // indices into the ps's slices, ascending; empty: nothing is pushed
  PullWhat pull = PullWhat::kNothing;
  uint64_t pulled_version = 0;  // of the values that the gradients were computed from
  uint32_t minibatches = 0;     // ps 0: counts one update made of that many minibatches; 0 counts nothing
  uint64_t generation = 0;      // of those values; another is answered with Aborted
  int64_t global_step = 0;      // that the sender knows of: schedules on ps that don't count it go by it
  std::vector<double> scales;   // one a pushed slice: what its gradient is multiplied by; empty: 1 for all
  bool contributes = false;     // to the round of the synchronous gate
  uint64_t local_step = 0;      // then: the round that the gradients were computed for, as ps 0 answered it
  uint64_t clock = 0;           // bounded staleness, workers' order: it is the sender's clock-th push; 0: none of them
  bool non_finite = false;      // ps 0: its gradients had NaN or infinity and were dropped (NonFinite::kDrop)
  bool with_pulled = false;     // behind the bulk: of each pushed trainable slice what it was computed from
  double compensation = 0;      // then: c of DelayCompensation, for all of them
  double adaptive = 0;          // then: γ of AdaptiveDelta, likewise; one of the two at most
  double exchange = 0;          // α of an elastic exchange: values are pushed, what they moved is the answer
  StalenessScale staleness_scale = StalenessScale::kNone;  // by the staleness that this ps answers
  bool update = false;                             // a ps's share of an update that ps 0 counts, be it without a slice
  WirePrecision pushed_as = WirePrecision::kFull;  // the gradients (of trainable float32 variables alone)
  WirePrecision pulled_as = WirePrecision::kFull;  // likewise what is pulled
  UpdatePart part = UpdatePart::kWhole;
  std::vector<uint32_t> ranges;   // in parts: of each pushed slice the first stripe, and how many; empty: whole slices
  std::vector<uint32_t> earlier;  // closing: slices, ascending, of which open parts have brought something
  WorkRange work;                 // ps 0: what of the work queue is used up with it

  // As new, but for the memory of its lists.
  void Clear() {
    std::vector<uint32_t> slices = std::move(pushed);
    std::vector<double> factors = std::move(scales);
    std::vector<uint32_t> stripes = std::move(ranges);
    std::vector<uint32_t> begun = std::move(earlier);
    *this = PushPullRequest();
    (ranges = std::move(stripes)).clear();
    (earlier = std::move(begun)).clear();
    (pushed = std::move(slices)).clear();
    (scales = std::move(factors)).clear();
  }
  // It is part of an update, or counts one: once training has ended, nothing of the kind is taken.
  bool Trains() const { return update || !pushed.empty() || minibatches > 0 || clock > 0 || contributes; }

  using Fields = FieldList<Field<1, &PushPullRequest::stamp>, Field<2, &PushPullRequest::pushed>,
                           Field<3, &PushPullRequest::pull>, Field<4, &PushPullRequest::pulled_version>,
                           Field<5, &PushPullRequest::minibatches>, Field<6, &PushPullRequest::generation>,
                           Field<7, &PushPullRequest::global_step>, Field<8, &PushPullRequest::scales>,
                           Field<10, &PushPullRequest::contributes>, Field<11, &PushPullRequest::local_step>,
                           Field<12, &PushPullRequest::clock>, Field<13, &PushPullRequest::non_finite>,
                           Field<20, &PushPullRequest::update>, Field<21, &PushPullRequest::with_pulled>,
                           Field<22, &PushPullRequest::compensation>, Field<23, &PushPullRequest::exchange>,
                           Field<24, &PushPullRequest::staleness_scale>, Field<25, &PushPullRequest::adaptive>,
                           Field<30, &PushPullRequest::pushed_as>, Field<31, &PushPullRequest::pulled_as>,
                           Field<40, &PushPullRequest::part>, Field<41, &PushPullRequest::ranges>,
                           Field<42, &PushPullRequest::earlier>, Field<50, &PushPullRequest::work, &WorkRange::from>,
                           Field<51, &PushPullRequest::work, &WorkRange::through>>;
};

struct PushPullReply {
  uint64_t version = 0;     // updates on this ps that are in the values, this one included; others may be, too
  uint64_t staleness = 0;   // updates of others between the pull and this push
  int64_t global_step = 0;  // meaningful on ps 0
  uint64_t round = 0;       // that is being collected: ps 0's is the token
  bool dropped = false;     // the gradients were too old, or the sender's earlier life is in the round already
  uint64_t clock = 0;       // of the sender
  std::string load;         // to the chief, from ps 0: somebody asks for this checkpoint to be loaded
  bool incomplete = false;  // closing: not all open parts have arrived, so the update is neither noted nor counted yet

  using Fields = FieldList<Field<1, &PushPullReply::version>, Field<2, &PushPullReply::staleness>,
                           Field<3, &PushPullReply::global_step>, Field<4, &PushPullReply::load>,
                           Field<10, &PushPullReply::round>, Field<11, &PushPullReply::dropped>,
                           Field<12, &PushPullReply::clock>, Field<20, &PushPullReply::incomplete>>;
};

}  // namespace muster
