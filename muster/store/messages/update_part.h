// How much of an update one request brings to its ps (docs/store/overlap.md). The numbers are those of the
// wire.
#pragma once

#include <cstdint>

namespace muster {

enum class UpdatePart : uint8_t {
  kWhole = 0,
  kOpen = 1,     // a part; more follows under the same number
  kClosing = 2,  // the last part, with which the update is noted and counted
  kGivenUp = 3,  // no more parts and no count will come: nobody has to wait for it
};

}  // namespace muster
