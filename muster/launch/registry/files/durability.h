// What a write survives.
#pragma once

namespace muster {

// kProcess: the death of this process at any moment. kDisk: a loss of power, too, when the call has returned.
enum class Durability { kProcess, kDisk };

}  // namespace muster
