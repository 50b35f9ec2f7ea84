// The two ends of a ring of bytes in shared memory, with one writer and one reader (docs/shared_memory.md, section 2).
// Each end keeps its own count privately and accepts only possible values of the other's. Not thread-safe: each end is
// used by one thread. Internal to the transport.
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
  // Writes as much of the vectors as fits and returns how many bytes that was; -1: the reader's count is impossible.
  ssize_t Write(const iovec* vectors, size_t count);
  bool HasRoom() const;  // also true if the reader's count is impossible, so that Write reports it

 private:
  const SharedMemory::Ring ring_;
  uint64_t written_ = 0;
};

class RingReader {
 public:
  explicit RingReader(const SharedMemory::Ring& ring) : ring_(ring) {}
  // Reads the available bytes into the vectors and returns how many; -1: the writer's count is impossible.
  ssize_t Read(const iovec* vectors, size_t count);
  bool HasBytes() const;  // also true if the writer's count is impossible

 private:
  const SharedMemory::Ring ring_;
  uint64_t read_ = 0;
};

}  // namespace muster
