// The messages with which a process on a ps's host comes to its arena (docs/store/direct_apply.md). Plain
// values.
#pragma once

#include <cstdint>
#include <string>

#include "muster/store/messages/stamp.h"
#include "muster/transport/messages/fields.h"

namespace muster {

// Asks where a process on this ps's host can fetch its arena, and what it must show there. NotFound: this ps shares its
// arena with nobody.
struct OpenDirectRequest {
  Stamp stamp;
  using Fields = FieldList<Field<1, &OpenDirectRequest::stamp>>;
};

struct OpenDirectReply {
  std::string socket;  // name in the abstract namespace
  std::string ticket;
  uint32_t clients = 0;  // of the arena

  using Fields = FieldList<Field<1, &OpenDirectReply::socket>, Field<2, &OpenDirectReply::ticket>,
                           Field<3, &OpenDirectReply::clients>>;
};

// The sender has fetched the arena with that ticket, and writes in it from the answer on.
struct EnterDirectRequest {
  Stamp stamp;
  std::string ticket;

  using Fields = FieldList<Field<1, &EnterDirectRequest::stamp>, Field<2, &EnterDirectRequest::ticket>>;
};

}  // namespace muster
