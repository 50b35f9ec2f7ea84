// The messages with which a process on a ps's host comes to its arena (docs/store/direct_apply.md);
// messages.h encodes them. Plain values.
#pragma once

#include <cstdint>
#include <string>

#include "muster/store/stamp.h"

namespace muster {

// Where this ps's arena is to be fetched by a process on its host, and what to show there. NotFound: this ps gives it
// to nobody.
struct OpenDirectRequest {
  Stamp stamp;
};

struct OpenDirectReply {
  std::string socket;  // name in the abstract namespace
  std::string ticket;
  uint32_t clients = 0;  // of the arena
};

// The sender has fetched the arena with that ticket, and writes in it itself from the answer on.
struct EnterDirectRequest {
  Stamp stamp;
  std::string ticket;
};

}  // namespace muster
