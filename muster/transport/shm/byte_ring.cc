#include "muster/transport/shm/byte_ring.h"

#include <algorithm>
#include <cstring>

namespace muster {
namespace {

// Calls `copy(place, memory, bytes)` for the pieces of the ring, from `at` on, and of the vectors, up to `most` bytes.
template <typename Copy>
size_t Walk(MutableByteSpan ring, uint64_t at, const iovec* vectors, size_t count, size_t most, const Copy& copy) {
  size_t done = 0;
  for (size_t i = 0; i < count && done < most; ++i) {
    for (size_t offset = 0; offset < vectors[i].iov_len && done < most;) {
      const size_t place = (at + done) & (ring.size() - 1);
      const size_t n = std::min({vectors[i].iov_len - offset, most - done, ring.size() - place});
      copy(ring.data() + place, static_cast<std::byte*>(vectors[i].iov_base) + offset, n);
      offset += n;
      done += n;
    }
  }
  return done;
}

}  // namespace

// The counts and the words that say which side sleeps (ShmStream) are stored and loaded in one total order. Either the
// writer, which then checks whether the reader sleeps, or the reader, which checks for bytes before it sleeps, sees the
// other.
ssize_t RingWriter::Write(const iovec* vectors, size_t count) {
  const uint64_t used = written_ - ring_.read->load();
  if (used > ring_.bytes.size()) return -1;
  const size_t n = Walk(ring_.bytes, written_, vectors, count, ring_.bytes.size() - used,
                        [](std::byte* place, const std::byte* from, size_t bytes) { std::memcpy(place, from, bytes); });
  written_ += n;
  if (n > 0) ring_.written->store(written_);
  return static_cast<ssize_t>(n);
}

bool RingWriter::HasRoom() const { return written_ - ring_.read->load() != ring_.bytes.size(); }

ssize_t RingReader::Read(const iovec* vectors, size_t count) {
  const uint64_t there = ring_.written->load() - read_;
  if (there > ring_.bytes.size()) return -1;
  const size_t n = Walk(ring_.bytes, read_, vectors, count, there,
                        [](const std::byte* place, std::byte* to, size_t bytes) { std::memcpy(to, place, bytes); });
  read_ += n;
  if (n > 0) ring_.read->store(read_);
  return static_cast<ssize_t>(n);
}

bool RingReader::HasBytes() const { return ring_.written->load() != read_; }

}  // namespace muster
