// The sender of a request. Plain values.
#pragma once

#include <cstdint>

namespace muster {

// Who sends a request: which client of the table, which life of it, and the number of the request within it. A number
// that was seen already makes a mutating request a retry.
struct Stamp {
  uint32_t client = 0;
  uint64_t incarnation = 0;
  uint64_t sequence = 0;

  bool operator==(const Stamp&) const = default;
};

}  // namespace muster
