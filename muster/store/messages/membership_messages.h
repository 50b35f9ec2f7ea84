// The messages by which a process joins a ps, stays known to it and leaves, and by which training is ended. Plain
// values.
#pragma once

#include <cstdint>
#include <string>

#include "muster/store/messages/stamp.h"
#include "muster/transport/messages/fields.h"

namespace muster {

struct JoinRequest {
  std::string task;  // "worker:1"
  uint64_t incarnation = 0;
  bool chief = false;  // asks for the chief's lease
  std::string where;   // "host, pid 123": for messages
  uint64_t life = 0;   // how often the task's launcher has started it, this time included; 0: unknown

  using Fields = FieldList<Field<1, &JoinRequest::task>, Field<2, &JoinRequest::incarnation>,
                           Field<3, &JoinRequest::chief>, Field<4, &JoinRequest::where>, Field<5, &JoinRequest::life>>;
};

struct JoinReply {
  uint32_t client = 0;
  uint64_t last_sequence = 0;  // the highest of the task's earlier lives: go on from there
  bool ready = false;          // the model is initialised
  bool ended = false;          // training has ended: nothing to do
  uint64_t ps_incarnation = 0;
  uint64_t chief_epoch = 0;  // of the lease, for the chief
  int64_t global_step = 0;
  uint64_t generation = 0;  // of the values, ready or not

  using Fields =
      FieldList<Field<1, &JoinReply::client>, Field<2, &JoinReply::last_sequence>, Field<3, &JoinReply::ready>,
                Field<4, &JoinReply::ended>, Field<5, &JoinReply::ps_incarnation>, Field<6, &JoinReply::chief_epoch>,
                Field<7, &JoinReply::global_step>, Field<8, &JoinReply::generation>>;
};

// What a process says of itself several times a lease (docs/store/gates.md, "Who is there").
struct HeartbeatRequest {
  // A worker's first steps may compile for minutes, and are no measure of later ones.
  static constexpr uint64_t kFirstSteps = 2;

  Stamp stamp;
  uint64_t beat = 0;   // its number among this process's to this ps; 0: asked by the training thread, says nothing more
  uint64_t heard = 0;  // the newest beat whose answer has come back
  uint64_t steps = 0;  // pushes to rounds that were answered
  uint64_t step_nanos = 0;  // median time from such an answer, after the first steps, to the next push; 0: not known
  std::string busy;         // what the program does instead of training; empty: it trains

  using Fields = FieldList<Field<1, &HeartbeatRequest::stamp>, Field<2, &HeartbeatRequest::beat>,
                           Field<3, &HeartbeatRequest::heard>, Field<4, &HeartbeatRequest::steps>,
                           Field<5, &HeartbeatRequest::step_nanos>, Field<6, &HeartbeatRequest::busy>>;
};

struct DoneRequest {
  Stamp stamp;
  using Fields = FieldList<Field<1, &DoneRequest::stamp>>;
};

// Answered with JSON: see store_status.h.
struct StatusRequest {
  using Fields = FieldList<>;
};

struct ShutdownRequest {
  std::string reason;
  using Fields = FieldList<Field<1, &ShutdownRequest::reason>>;
};

}  // namespace muster
