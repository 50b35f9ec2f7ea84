// The sender of a request. Plain values.
#pragma once

#include <cstdint>

#include "muster/transport/messages/fields.h"

namespace muster {

// Identifies a request: which client of the table sent it, which life of that client, and the request's number within
// it. A number that was seen already makes a mutating request a retry.
struct Stamp {
  uint32_t client = 0;
  uint64_t incarnation = 0;
  uint64_t sequence = 0;

  bool operator==(const Stamp&) const = default;

  using Fields = FieldList<Field<1, &Stamp::client>, Field<2, &Stamp::incarnation>, Field<3, &Stamp::sequence>>;
};

}  // namespace muster
