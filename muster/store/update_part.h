// How much of an update one request brings to its ps (docs/store/overlap.md). The numbers are those of the
// wire.
#pragma once

#include <cstdint>

namespace muster {

enum class UpdatePart : uint8_t {
  kWhole = 0,
  kOpen = 1,     // some of it, more follows under the same number
  kClosing = 2,  // the last of it; the update is noted and counted with it
  kGivenUp = 3,  // there will be no rest, and no count: nobody has to wait for it
};

}  // namespace muster
