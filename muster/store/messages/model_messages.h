// The messages that bring a model and its values to a ps, and that wait for them. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/store/messages/model_fields.h"
#include "muster/store/messages/stamp.h"
#include "muster/store/model/model.h"
#include "muster/transport/messages/fields.h"

namespace muster {

// Bulk: the values of the slices in order; with `with_slots` then every slot of every trainable slice, slot by slot
// within a slice.
struct InitializeRequest {
  Stamp stamp;
  uint64_t chief_epoch = 0;
  StoreModel model;
  bool with_slots = false;
  std::vector<uint64_t> steps;  // with slots: the rule's step counter of each stripe of the ps
  int64_t global_step = 0;
  int64_t minibatches = 0;
  uint64_t generation = 0;  // higher than that of any ps; one that a ps has already changes nothing
  bool with_rows = false;   // the bulk has the values of tables of rows too; else they begin as their initializers say
  std::string work;         // ps 0: the WorkState that belongs to these values; empty: of none

  using Fields = FieldList<Field<1, &InitializeRequest::stamp>, Field<2, &InitializeRequest::chief_epoch>,
                           Field<3, &InitializeRequest::model>, Field<4, &InitializeRequest::with_slots>,
                           Field<5, &InitializeRequest::steps>, Field<6, &InitializeRequest::global_step>,
                           Field<7, &InitializeRequest::minibatches>, Field<8, &InitializeRequest::generation>,
                           Field<9, &InitializeRequest::with_rows>, Field<10, &InitializeRequest::work>>;
};

struct AwaitReadyRequest {
  Stamp stamp;
  StoreModel model;         // compared with the chief's
  uint64_t generation = 0;  // answered when the values are of this generation or a later one

  using Fields = FieldList<Field<1, &AwaitReadyRequest::stamp>, Field<2, &AwaitReadyRequest::model>,
                           Field<3, &AwaitReadyRequest::generation>>;
};

struct AwaitReadyReply {
  int64_t global_step = 0;
  uint64_t generation = 0;

  using Fields = FieldList<Field<1, &AwaitReadyReply::global_step>, Field<2, &AwaitReadyReply::generation>>;
};

}  // namespace muster
