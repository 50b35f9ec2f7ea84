// What can be set about shared memory between the ends of one connection (docs/shared_memory.md).
#pragma once

#include <cstddef>

namespace muster {

struct SharedMemoryOptions {
  bool enabled = true;  // if both ends want it and are on one host
  // What a server gives a client: for the frames of each direction (a power of two), and beside them for large bulk.
  // Of an area memory is taken only as far as it is used.
  size_t ring_bytes = size_t{256} << 10;
  size_t area_bytes = size_t{1} << 30;
  // A bulk part from this length on is read where its sender has put it; a shorter one is copied once more, which costs
  // less than finding a place.
  size_t least_beside = size_t{16} << 10;
};

}  // namespace muster
