// The messages by which a process on a ps's host gets its arena (docs/store/direct_apply.md); messages.h
// encodes them. Plain values.
#pragma once

#include <cstdint>
#include <string>

#include "muster/store/messages/stamp.h"

namespace muster {

// Asks where a process on this ps's host can fetch its arena, and what it must show there. NotFound: this ps shares its
// arena with nobody.
struct OpenDirectRequest {
  Stamp stamp;
};

struct OpenDirectReply {
  std::string socket;  // name in the abstract namespace
  std::string ticket;
  uint32_t clients = 0;  // that the arena is laid out for
};

// The sender has fetched the arena with that ticket, and writes in it from the answer on.
struct EnterDirectRequest {
  Stamp stamp;
  std::string ticket;
};

}  // namespace muster
