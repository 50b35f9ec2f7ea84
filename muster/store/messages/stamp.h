// The sender of a request. Plain values.
#pragma once

#include <cstdint>

namespace muster {

// Identifies a request: which client of the table sent it, which life of that client, and the request's number within
// it. A number that was seen already makes a mutating request a retry.
struct Stamp {
  uint32_t client = 0;
  uint64_t incarnation = 0;
  uint64_t sequence = 0;

  bool operator==(const Stamp&) const = default;
};

}  // namespace muster
