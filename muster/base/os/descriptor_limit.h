// How many descriptors (files, sockets, shared memory) this process may have open. A usual default is 1024 though the
// process may take far more, and a ps with many workers, or a launcher with many tasks, needs more. Linux. Thread-safe.
#pragma once

#include <cstddef>

namespace muster {

// Raises the limit to the highest that the system allows this process, and returns it. Each process of muster calls it
// when it starts; programs that it starts inherit the raised limit.
size_t RaiseDescriptorLimit();

// Returns the present limit.
size_t DescriptorLimit();

}  // namespace muster
