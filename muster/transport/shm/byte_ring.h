// The two ends of a ring of bytes in shared memory, one writer and one reader (docs/shared_memory.md, section 2). Each
// keeps its own count to itself and believes of the other's only what can be. Not thread-safe: each end is used by one
// thread. Internal to the transport.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "muster/transport/io/shared_memory.h"

namespace muster {

class RingWriter {
 public:
  explicit RingWriter(const SharedMemory::Ring& ring) : ring_(ring) {}
  // How many bytes of the vectors went in, as many as there is room for; -1: the reader's count can't be.
  ssize_t Write(const iovec* vectors, size_t count);
  bool HasRoom() const;  // true also if the reader's count can't be, so that somebody looks

 private:
  const SharedMemory::Ring ring_;
  uint64_t written_ = 0;
};

class RingReader {
 public:
  explicit RingReader(const SharedMemory::Ring& ring) : ring_(ring) {}
  // How many bytes came out, as many as there are; -1: the writer's count can't be.
  ssize_t Read(const iovec* vectors, size_t count);
  bool HasBytes() const;  // true also if the writer's count can't be

 private:
  const SharedMemory::Ring ring_;
  uint64_t read_ = 0;
};

}  // namespace muster
