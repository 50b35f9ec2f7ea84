// Options of the shared memory between the ends of one connection (docs/shared_memory.md).
#pragma once

#include <cstddef>

namespace muster {

struct SharedMemoryOptions {
  bool enabled = true;  // if both ends want it and are on one host
  // The sizes that a server gives a client: a ring for the frames of each direction (a power of two), and an area for
  // large bulk beside each ring. An area takes memory only as far as it is used.
  size_t ring_bytes = size_t{256} << 10;
  size_t area_bytes = size_t{1} << 30;
  // The reader reads a bulk part of at least this length where its sender has put it; a shorter one is copied once
  // more, which costs less than finding a place.
  size_t least_beside = size_t{16} << 10;
};

}  // namespace muster
